"""Pages for readers: studies, cases, conversations, audits, and indexes of them.

`show` writes pages of a study set or benchmark to files. Every kind of page also has a pure function from data to HTML
(`render_study`, `render_case`, ...) for programs that serve pages themselves.
"""

from carina.pages.audit import render_audit
from carina.pages.benchmark_index import (
    CaseCard,
    count_strata,
    make_case_card,
    render_benchmark_index,
)
from carina.pages.case import CaseContent, CaseLinks, load_case, render_case
from carina.pages.conversation import (
    ConversationContent,
    is_conversation,
    load_conversation,
    render_conversation,
)
from carina.pages.conversation_index import list_conversations, render_conversation_index
from carina.pages.study import StudyContent, StudyLinks, load_study, render_study
from carina.pages.study_index import StudyCard, make_study_card, render_study_index
from carina.pages.write import (
    Page,
    Pages,
    show,
    write_case_page,
    write_case_pages,
    write_study_page,
    write_study_pages,
)

__all__ = [
    "CaseCard",
    "CaseContent",
    "CaseLinks",
    "ConversationContent",
    "Page",
    "Pages",
    "StudyCard",
    "StudyContent",
    "StudyLinks",
    "count_strata",
    "is_conversation",
    "list_conversations",
    "load_case",
    "load_conversation",
    "load_study",
    "make_case_card",
    "make_study_card",
    "render_audit",
    "render_benchmark_index",
    "render_case",
    "render_conversation",
    "render_conversation_index",
    "render_study",
    "render_study_index",
    "show",
    "write_case_page",
    "write_case_pages",
    "write_study_page",
    "write_study_pages",
]
