// The frontier at any threshold, from the stored policies. The arithmetic is that of saddleback.columns, in the same order, so
// that the numbers are those of `saddleback frontier` to the last digits.
"use strict";
(function () {
  const block = document.getElementById("numbers");
  if (!block) return;
  const data = JSON.parse(block.textContent);
  const single = data.names.length === 1;

  const target = (i, threshold) => (threshold - data.base[1 + i] * data.horizon) / data.scale[1 + i];
  const user = (j, unit) => unit * data.scale[j] + data.base[j] * data.horizon;

  function format(x) {
    if (x === null || x === undefined || !isFinite(x)) return "–";
    const size = Math.abs(x);
    if (size !== 0 && (size < 1e-4 || size >= 1e6)) return x.toExponential(2);
    return String(Number(x.toPrecision(4)));
  }

  // Rounding is shown as 0: of values what is less than this share of the range, of prices likewise.
  const value = (j, x) => (Math.abs(x) <= 2e-9 * Math.abs(data.scale[j]) * data.horizon ? 0 : x);
  const price = (i, x) => (Math.abs(x) <= 2e-9 * Math.abs(data.scale[0] / data.scale[1 + i]) ? 0 : x);

  // The best reward at a price, or an end of its range: 0 where it is no more than the threshold's rounding buys.
  const best = (i, x, price) => (Math.abs(x) <= 2e-9 * Math.abs(price * data.scale[1 + i]) * data.horizon ? 0 : value(0, x));

  const percent = (w) => `${Number((100 * w).toPrecision(3))} %`;

  // The point at b of the upper hull of (V_c, V_r): the best policy that meets b, or the best pair around it.
  function master(b) {
    const r = data.columns.map((x) => x[0]), c = data.columns.map((x) => x[1]);
    const inside = [], outside = [];
    c.forEach((x, k) => { if (x >= b) inside.push(k); });
    if (!inside.length) return null;
    let top = inside[0];
    for (const k of inside) if (r[k] > r[top] || (r[k] === r[top] && c[k] > c[top])) top = k;
    c.forEach((x, k) => { if (x < b && r[k] > r[top]) outside.push(k); });
    if (!outside.length) return { members: [top], weights: [1], value: r[top], price: 0 };
    let best = null;
    for (const i of outside) {
      for (const j of inside) {
        const share = (b - c[i]) / (c[j] - c[i]);
        const height = r[i] + share * (r[j] - r[i]);
        if (best === null || height > best.value) best = { i, j, share, value: height };
      }
    }
    const { i, j, share } = best;
    const price = Math.max(0, (r[i] - r[j]) / (c[j] - c[i]));
    const members = share < 1 ? (share > 0 ? [i, j] : [i]) : [j];
    return { members, weights: members.map((k) => (k === j ? share : 1 - share)), value: best.value, price };
  }

  function likely(members, weights) {
    let low = 0, high = 0;
    for (let n = 0; n < members.length; n += 1) {
      const limits = data.limits[members[n]];
      if (!limits) return null;
      low += weights[n] * limits[0][0];
      high += weights[n] * limits[1][0];
    }
    return [user(0, low), user(0, high)].sort((a, b) => a - b);
  }

  // Several constraints: a mixture of the two stored mixtures around the threshold, which meets it and may not be the best.
  function between(curve, threshold) {
    const points = curve.points;
    const after = points.findIndex((p) => p.threshold >= threshold);
    if (after < 0 || (after === 0 && points[0].threshold !== threshold)) return null;
    const q = points[after];
    if (q.threshold === threshold) return { ...q, price: q.multiplier, range: q.low === null ? null : [q.low, q.high], how: "" };
    const p = points[after - 1], t = (threshold - p.threshold) / (q.threshold - p.threshold);
    const shares = new Map();
    p.members.forEach((k, n) => shares.set(k, (shares.get(k) || 0) + (1 - t) * p.weights[n]));
    q.members.forEach((k, n) => shares.set(k, (shares.get(k) || 0) + t * q.weights[n]));
    const members = [...shares.keys()].filter((k) => shares.get(k) > 0), weights = members.map((k) => shares.get(k));
    const mean = (a, b) => a + t * (b - a);
    return {
      threshold, members, weights, value: mean(p.value, q.value), price: mean(p.multiplier, q.multiplier),
      range: likely(members, weights), how: "Between two computed points: reached by mixing both, so at least this.",
    };
  }

  function at(curve, threshold) {
    if (!single) return between(curve, threshold);
    const found = master(target(curve.constraint, threshold));
    if (found === null) return null;
    const price = found.price * Math.abs(data.scale[0]) / Math.abs(data.scale[1]);
    return {
      threshold, members: found.members, weights: found.weights, value: user(0, found.value), price,
      range: likely(found.members, found.weights), how: "",
    };
  }

  function ceiling(curve, threshold) {
    if (!data.bound) return null;
    const b = data.targets.slice();
    b[curve.constraint] = target(curve.constraint, threshold);
    let unit = data.bound.value;
    b.forEach((x, k) => { unit -= data.bound.sigma[1 + k] * x; });
    return user(0, Math.min(data.horizon, unit / data.bound.sigma[0]));
  }

  function floor(curve, threshold) {
    if (!data.floor) return null;
    const meets = data.floor.constraints.every((end, k) => {
      const b = k === curve.constraint ? threshold : data.asked[k];
      return data.senses[k] === "≥" ? end >= b : end <= b;
    });
    return meets ? data.floor.value : null;
  }

  function put(name, k, text, exact) {
    const place = document.getElementById(`${name}-${k}`);
    place.textContent = text;
    if (exact === null || exact === undefined) delete place.dataset.exact;
    else place.dataset.exact = JSON.stringify(exact);
  }

  function mixture(place, point) {
    place.textContent = "";
    const order = point.members.map((k, n) => [k, point.weights[n]]).sort((a, b) => b[1] - a[1]);
    for (const [k, weight] of order) {
      const row = document.createElement("div"), share = document.createElement("b");
      const words = document.createElement("span"), bar = document.createElement("i");
      row.className = "share";
      row.dataset.member = k;
      row.dataset.weight = JSON.stringify(weight);
      row.hidden = weight < 1e-6; // rounding of the threshold
      share.textContent = percent(weight);
      const own = data.names.map((name, j) => `${name} ${format(value(1 + j, user(1 + j, data.columns[k][1 + j])))}${data.suffixes[j]}`).join(", ");
      words.textContent = `policy #${k + 1}: ${data.objective} ${format(value(0, user(0, data.columns[k][0])))}, ${own}`;
      bar.style.width = `${100 * weight}%`;
      row.append(share, words, bar);
      place.append(row);
    }
  }

  function show(curve, k, threshold) {
    const point = at(curve, threshold), name = data.names[curve.constraint], sense = data.senses[curve.constraint];
    const unit = data.suffixes[curve.constraint], shown = format(value(1 + curve.constraint, threshold));
    const how = document.getElementById(`how-${k}`), place = document.getElementById(`mixture-${k}`);
    const slider = document.getElementById(`slider-${k}`);
    const top = ceiling(curve, threshold), bottom = floor(curve, threshold);
    const all = user(0, data.horizon), known = top !== null && Math.abs(top - all) > 1e-9 * Math.abs(data.scale[0]);
    put("ceiling", k, top === null ? "not proved" : known ? format(top) : "no information", top);
    put("floor", k, bottom === null ? "not proved" : format(bottom), bottom);
    if (point === null) {
      how.textContent = `No mixture of the policies found is known to meet ${name} ${sense} ${shown}${unit}.`;
      for (const output of ["value", "range", "price"]) put(output, k, "–", null);
      place.textContent = "";
      return;
    }
    how.textContent = point.how;
    const range = point.range, found = (x) => format(best(curve.constraint, x, point.price));
    put("value", k, found(point.value), point.value);
    put("range", k, range === null ? "not measured" : range.map(found).join(" to "), range);
    const cost = format(price(curve.constraint, point.price));
    put("price", k, cost, point.price);
    mixture(place, point);
    const words = `${name} ${sense} ${shown}${unit}: best ${data.objective} ${found(point.value)}, price ${cost}`;
    slider.setAttribute("aria-valuetext", words);
    const to = ([low, high, start, end], x) => start + (Math.min(Math.max(x, low), high) - low) / (high - low) * (end - start);
    const x = to(curve.frame.x, threshold), y = to(curve.frame.y, point.value);
    const marker = document.getElementById(`marker-${k}`), pointer = document.getElementById(`pointer-${k}`);
    marker.setAttribute("x1", x);
    marker.setAttribute("x2", x);
    pointer.setAttribute("cx", x);
    pointer.setAttribute("cy", y);
  }

  data.curves.forEach((curve, k) => {
    const slider = document.getElementById(`slider-${k}`), exact = document.getElementById(`exact-${k}`);
    const first = slider.value;
    const moved = () => {
      const threshold = curve.points[Number(slider.value)].threshold;
      exact.value = Number(value(1 + curve.constraint, threshold).toPrecision(6));
      show(curve, k, threshold);
    };
    slider.addEventListener("input", moved);
    exact.addEventListener("input", () => {
      const threshold = exact.valueAsNumber;
      if (!isFinite(threshold)) return;
      let near = 0;
      curve.points.forEach((p, n) => {
        if (Math.abs(p.threshold - threshold) < Math.abs(curve.points[near].threshold - threshold)) near = n;
      });
      slider.value = near;
      show(curve, k, threshold);
    });
    document.getElementById(`back-${k}`).addEventListener("click", () => { slider.value = first; moved(); });
    moved();
  });
})();

// The table of states, cut down to the rows that hold what is looked for.
(function () {
  const field = document.getElementById("find-state");
  if (!field) return;
  const rows = [...document.querySelectorAll("#states tbody tr")], found = document.getElementById("found-states");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const search = () => {
    const wanted = field.value.trim().toLowerCase();
    let number = 0;
    rows.forEach((row, k) => {
      row.hidden = !texts[k].includes(wanted);
      number += row.hidden ? 0 : 1;
    });
    found.textContent = number === 1 ? "1 state" : `${number} states`;
  };
  field.parentElement.hidden = false;
  field.addEventListener("input", search);
  search();
})();
