(() => {
  "use strict";
{% include "page.js" +%}
})();
