(function () {
  "use strict";
  var box = document.getElementById("filter");
  var count = document.getElementById("shown");
  var rows = Array.prototype.slice.call(document.querySelectorAll("#findings tbody tr"));
  if (!box || !count) { return; }
  var texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
  function filter() {
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    var shown = 0;
    rows.forEach(function (row, at) {
      var fits = words.every(function (word) { return texts[at].indexOf(word) >= 0; });
      row.hidden = !fits;
      if (fits) { shown += 1; }
    });
    count.textContent = shown + " of " + rows.length;
  }
  box.addEventListener("input", filter);
  // a mark of the timeline must not lead to a row that is filtered out
  window.addEventListener("hashchange", function () {
    var row = document.getElementById(location.hash.slice(1));
    if (row && row.hidden) { box.value = ""; filter(); row.scrollIntoView(); }
  });
  document.getElementById("search").hidden = false;
  filter();
})();
