(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const runs = new Map(data.runs.map((run) => [run.id, run]));
  const at = (id) => document.getElementById(id);
  const [find, list, pane, left, large] = ["find", "list", "case", "left", "large"].map(at);
  const filters = { group: at("f-group"), target: at("f-target"), path: at("f-path"), run: at("f-run"), stage: at("f-stage"), status: at("f-status") };
  const empty = pane.firstElementChild;
  let shown = [];
  let current = null;

  const make = (name, options = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
      if (key === "class") element.className = value;
      else if (key === "text") element.textContent = value;
      else element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== ""));
    return element;
  };
  // The mark that a run has in every chart.
  const marks = new Map([...at("marks").content.querySelectorAll("[data-run]")].map((one) => [one.dataset.run, one]));
  const mark = (id) => marks.get(id).firstElementChild.cloneNode(true);
  const named = (run) => make("span", { class: "who" }, mark(run.id), run.name);
  const distinct = (values) => [...new Set(values)].filter((value) => value !== "");
  const fill = (select, first, entries) => {
    select.append(...[["", first], ...entries].map(([value, text, title = ""]) => make("option", title ? { value, text, title } : { value, text })));
  };
  const stages = new Map(data.cases.flatMap((one) => one.steps.map((step) => [`${one.group}/${step.stage}`, step])));
  fill(filters.group, "all", data.groups.map((name, place) => [String(place), name]));
  if (data.groups.length < 2) document.querySelector("[data-filter-row=group]").hidden = true;
  fill(filters.target, "all", distinct(data.cases.map((one) => one.target)).sort().map((name) => [name, name]));
  const pathWords = (code) => data.paths[code] ? `${data.paths[code].name} (${code})` : code;
  const pathMeaning = (code) => data.paths[code] ? `${code}: ${data.paths[code].meaning}` : "";
  fill(filters.path, "all", distinct(data.cases.map((one) => one.path)).sort().map((name) => [name, pathWords(name), pathMeaning(name)]));
  fill(filters.run, "any", data.runs.map((run) => [run.id, data.groups.length > 1 ? `${run.name} (${data.groups[run.group]})` : run.name]));
  fill(filters.stage, "any or none", [...stages].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })).map(([key, step]) =>
    [key, data.groups.length > 1 ? `${step.stage} ${step.stageName} (${data.groups[Number(key.split("/")[0])].split(" ")[0]})` : `${step.stage} ${step.stageName}`]));
  fill(filters.status, "any", [["right", "no error"], ["wrong", "any error"], ["unparsed", "answer not parsed"], ["incomplete", "incomplete"], ["split", "models disagree"]]);

  const words = data.cases.map((one) => [one.id, one.target, one.path, one.pathName, one.study, one.patient,
    ...one.steps.flatMap((step) => [step.task, step.question, step.gold, ...Object.values(step.answers).flatMap((a) => [a.raw, a.parsed])])].join("\n").toLowerCase());

  const fits = (one, place) => {
    const wanted = Object.fromEntries(Object.entries(filters).map(([name, select]) => [name, select.value]));
    if (wanted.group && String(one.group) !== wanted.group) return false;
    if (wanted.target && one.target !== wanted.target) return false;
    if (wanted.path && one.path !== wanted.path) return false;
    const outcomes = wanted.run ? [one.outcomes[wanted.run]].filter(Boolean) : Object.values(one.outcomes);
    if (!outcomes.length) return false;
    if (wanted.stage) {
      const [group, stage] = wanted.stage.split("/").map(Number);
      if (one.group !== group || !outcomes.some((outcome) => outcome.wrong.includes(stage))) return false;
    }
    if (wanted.status === "unparsed" && !outcomes.some((outcome) => outcome.unparsed)) return false;
    if (wanted.status === "split" && new Set(Object.values(one.outcomes).map((outcome) => outcome.status)).size < 2) return false;
    if (["right", "wrong", "incomplete"].includes(wanted.status) && !outcomes.some((outcome) => outcome.status === wanted.status)) return false;
    const part = find.value.trim().toLowerCase();
    return !part || words[place].includes(part);
  };

  const SIGNS = { right: "✓", wrong: "✕", incomplete: "…", text: "≈" };
  const entries = data.cases.map((one) => {
    const outcomes = Object.values(one.outcomes);
    const right = outcomes.filter((outcome) => outcome.status === "right").length;
    const judged = outcomes.filter((outcome) => outcome.status !== "text").length;
    const button = make("button", { type: "button", "data-case": one.id, title: pathMeaning(one.path) },
      make("span", { class: "about", text: one.target || one.study }),
      one.path ? make("span", { class: "path", text: pathWords(one.path) }) : "",
      make("span", { class: "id", text: one.id }),
      make("span", { class: "marks" }, judged ? `${right} of ${judged} runs without an error` : "free text only"));
    button.addEventListener("click", () => select(one));
    return { one, item: make("li", {}, button), button };
  });
  list.append(...entries.map((entry) => entry.item));

  // ---- one case ----
  const enlarge = (name, boxes) => {
    large.querySelector(".image").replaceWith(imageFrame(name, boxes, "div"));
    large.showModal();
  };
  const imageFrame = (name, boxes, tag = "span") => {
    const image = data.images[name];
    const frame = make(tag, { class: "image" }, make("img", { src: image.uri, width: image.w, height: image.h, alt: image.alt, decoding: "async" }));
    // Boxes that agree have their marks side by side.
    let said = 0;
    for (const { run, box, name: label } of boxes.filter((one) => one.image === name)) {
      const [x, y, w, h] = box;
      const colour = run ? `--c:var(--${runs.get(run).colour});` : "";
      frame.append(make("span", { class: run ? "box-said" : "box-right", title: `${run ? runs.get(run).name : "right answer"}${label ? `: ${label}` : ""}`, style: `${colour}left:${x}%;top:${y}%;width:${w}%;height:${h}%` },
        make("span", { class: "chip", style: `--at:${run ? said++ : 0}` }, run ? mark(run) : "✓")));
    }
    return frame;
  };
  const imageRow = (names, boxes) => make("div", { class: "images" }, ...names.map((name) => {
    const button = make("button", { type: "button", "aria-label": `Enlarge: ${data.images[name].alt}` }, imageFrame(name, boxes));
    button.addEventListener("click", () => enlarge(name, boxes));
    return button;
  }));
  const verdict = (answer) => {
    if (answer.state === "incomplete") return ["other", "… incomplete"];
    if (answer.state === "not_reached") return ["wrong", "✕ not reached"];
    if (answer.failure) return ["wrong", `✕ ${answer.failure}`];
    if (answer.right === null) return ["other", answer.score === null ? "≈ free text" : `≈ score ${answer.score}`];
    return answer.right ? ["right", "✓ right"] : ["wrong", "✕ wrong"];
  };
  const answered = (id, answer) => {
    const [kind, text] = verdict(answer);
    const score = answer.right !== null && answer.score !== null ? `overlap ${answer.score}` : "";
    const notes = [score, answer.kinds.length ? `chose: ${answer.kinds.join(", ")}` : "", answer.wrongForm ? "not in the requested form" : "", answer.error].filter(Boolean).join(" · ");
    const said = answer.parsed || answer.raw;
    const body = make("div", {}, make("span", { class: `verdict ${kind}`, text }),
      notes ? make("span", { class: "quiet", text: ` ${notes}` }) : "",
      said ? make("p", { class: said.length < 70 ? "words short" : "words", text: said.length > 400 ? `${said.slice(0, 400)} …` : said }) : "",
      answer.hint ? make("p", { class: "hint", text: `Hint before the question: ${answer.hint}` }) : "",
      answer.raw && (answer.raw !== said || said.length > 400) ? make("details", {}, make("summary", { text: "Full answer" }), make("pre", { text: answer.raw })) : "");
    return make("li", { "data-run": id }, named(runs.get(id)), body);
  };
  const stepped = (step) => {
    const boxes = [...step.boxes, ...Object.entries(step.answers).flatMap(([run, answer]) => answer.boxes.map((box) => ({ ...box, run })))];
    const names = distinct([...step.images, ...boxes.map((box) => box.image)]);
    const text = make("div", {},
      make("h4", {}, `${step.id} · ${step.task} `, make("span", { class: "quiet", text: `stage ${step.stage} ${step.stageName}` })),
      step.context ? make("p", { class: "question quiet", text: step.context }) : "",
      make("p", { class: "question", text: step.question }),
      step.options.length ? make("ol", { class: "options" }, ...step.options.map((option, place) =>
        make("li", {}, make("span", { class: "quiet", text: `(${place + 1})` }), make("span", { text: option.text }), option.right ? make("span", { class: "key", text: "✓ key" }) : ""))) : "",
      make("p", { class: "gold", text: `Right answer: ${step.gold}` }),
      make("ul", { class: "answers" }, ...data.runs.filter((run) => run.id in step.answers).map((run) => answered(run.id, step.answers[run.id]))));
    return make("section", { class: names.length ? "step with-images" : "step", "data-step": step.id }, names.length ? imageRow(names, boxes) : "", text);
  };
  const select = (one, focus = false) => {
    current = one;
    for (const entry of entries) entry.button.setAttribute("aria-current", String(entry.one === one));
    if (!one) { pane.replaceChildren(empty); return; }
    const summary = make("ul", { class: "sum" }, ...data.runs.filter((run) => run.id in one.outcomes).map((run) => {
      const outcome = one.outcomes[run.id];
      const kind = { right: "right", wrong: "wrong" }[outcome.status] || "other";
      return make("li", {}, make("span", { class: `verdict ${kind}`, text: SIGNS[outcome.status] }), " ", named(run), `: ${outcome.of ? `${outcome.right} of ${outcome.of} right` : "free text"}${outcome.status === "incomplete" ? ", incomplete" : ""}`);
    }));
    pane.replaceChildren(
      make("h3", { text: [one.target, one.path ? pathWords(one.path) : ""].filter(Boolean).join(", ") || data.groups[one.group], title: pathMeaning(one.path) }),
      make("p", { class: "meta quiet", text: [one.id, `study ${one.study}`, one.patient ? `patient ${one.patient}` : ""].filter(Boolean).join(" · ") }),
      one.page ? make("p", { class: "meta" }, make("a", { href: one.page, text: "Page of this case" })) : "",
      summary, ...one.steps.map(stepped));
    pane.scrollTop = 0;
    const entry = entries.find((candidate) => candidate.one === one);
    // Only the list moves: the page stays where its reader is.
    const { offsetTop: top, offsetHeight: height } = entry.item;
    list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + height - list.clientHeight));
    if (focus) entry.button.focus();
  };
  const narrow = () => {
    shown = entries.filter((entry) => { entry.item.hidden = !fits(entry.one, data.cases.indexOf(entry.one)); return !entry.item.hidden; });
    left.textContent = `${shown.length} of ${entries.length} cases`;
    if (!shown.some((entry) => entry.one === current)) select(shown.length ? shown[0].one : null);
  };
  const move = (step) => {
    if (!shown.length) return;
    const place = shown.findIndex((entry) => entry.one === current);
    select(shown[Math.min(shown.length - 1, Math.max(0, place + step))].one, true);
  };
  for (const control of [find, ...Object.values(filters)]) control.addEventListener("input", narrow);
  const form = document.querySelector(".filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(narrow));
  large.addEventListener("click", () => large.close());

  const section = at("cases");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || large.open) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) { event.preventDefault(); find.focus(); section.scrollIntoView(); return; }
    if (event.key === "Escape") {
      if (event.target === find && find.value) { find.value = ""; narrow(); } else if (typing || event.target === pane) document.activeElement.blur();
      return;
    }
    if (event.target === find && event.key === "Enter" && shown.length) { event.preventDefault(); select(shown[0].one, true); return; }
    if (typing) return;
    // Arrows move the page elsewhere; in the list they move the choice.
    const inList = list.contains(event.target);
    if (event.key === "j" || (inList && event.key === "ArrowDown")) { event.preventDefault(); move(1); }
    else if (event.key === "k" || (inList && event.key === "ArrowUp")) { event.preventDefault(); move(-1); }
    else if (event.key === "Enter" && inList) { event.preventDefault(); pane.focus(); }
  });
  narrow();
})();
