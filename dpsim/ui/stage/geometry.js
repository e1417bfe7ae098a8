// Where the cards stand, and the ways between them.

// Ways round a field of sixteen places and of twelve that visit each once: neighbours on the ring stand side by side.
const ROUND_TRIPS = {
  16: [
    [0, 0], [1, 0], [2, 0], [3, 0], [3, 1], [2, 1], [1, 1], [1, 2],
    [2, 2], [3, 2], [3, 3], [2, 3], [1, 3], [0, 3], [0, 2], [0, 1],
  ],
  12: [[0, 0], [1, 0], [2, 0], [3, 0], [3, 1], [3, 2], [2, 2], [2, 1], [1, 1], [1, 2], [0, 2], [0, 1]],
};

// With fewer ranks the last places stay free; the cards of each row then move together around its middle.
function roundTrip(world) {
  const trip = ROUND_TRIPS[world > 12 ? 16 : 12].slice(0, world);
  const rows = [0, 1, 2, 3].map((y) => trip.filter(([, row]) => row === y).map(([x]) => x).sort());
  const last = rows.filter((row) => row.length).length - 1;
  return trip.map(([x, y]) => [(rows[y].indexOf(x) + (4 - rows[y].length) / 2) / 3, y / last]);
}

// Where the cards stand: [x, y] of every card's centre as fractions, by the number of ranks.
function slots(world, columns, plus) {
  if (columns) {
    return Array.from({ length: world }, (_, rank) => {
      const row = Math.floor(rank / columns);
      const place = row % 2 ? columns - 1 - (rank % columns) : rank % columns; // a snake keeps neighbours close
      return [columns === 1 ? 0.5 : place / (columns - 1), row];
    });
  }
  if (world === 1) return [[0.5, 0.5]];
  if (world === 2) return [[0, 0.5], [1, 0.5]];
  if (world === 3) return [[0.5, 0], [1, 1], [0, 1]];
  if (world === 4 && plus) return [[0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5]];
  if (world > 8) return roundTrip(world);
  const side = world === 4 ? 1 : 2; // the rim of a square, walked clockwise
  const rim = [];
  for (let i = 0; i < side; i++) rim.push([i / side, 0]);
  for (let i = 0; i < side; i++) rim.push([1, i / side]);
  for (let i = 0; i < side; i++) rim.push([1 - i / side, 1]);
  for (let i = 0; i < side; i++) rim.push([0, 1 - i / side]);
  return Array.from({ length: world }, (_, rank) => rim[Math.round((rank * rim.length) / world)]);
}

function ease(way) {
  return way < 0.5 ? 2 * way * way : 1 - 2 * (1 - way) * (1 - way);
}

// The two side midpoints between which a message travels: near each other, facing each other, and rather on
// the outside of the ring than through its middle.
function anchors(from, to, middle) {
  let best = null;
  for (const [ax, ay] of SIDES) {
    const a = { x: from.x + ax * (from.w / 2 + 5), y: from.y + ay * (from.h / 2 + 5) };
    for (const [bx, by] of SIDES) {
      const b = { x: to.x + bx * (to.w / 2 + 5), y: to.y + by * (to.h / 2 + 5) };
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const facing = (ax * dx + ay * dy > 0 ? 0 : 2000) + (bx * dx + by * dy < 0 ? 0 : 2000);
      const outside = Math.hypot((a.x + b.x) / 2 - middle.x, (a.y + b.y) / 2 - middle.y);
      const cost = Math.hypot(dx, dy) + facing - 0.3 * outside;
      if (!best || cost < best.cost) best = { cost, a, b };
    }
  }
  return [best.a, best.b];
}
const SIDES = [[1, 0], [-1, 0], [0, 1], [0, -1]];

function wire() {
  const space = "http://www.w3.org/2000/svg";
  const group = document.createElementNS(space, "g");
  const [line, head] = ["line", "path"].map((tag) => group.appendChild(document.createElementNS(space, tag)));
  let last = "";
  const draw = (a, b) => {
    const key = `${a.x} ${a.y} ${b.x} ${b.y}`;
    if (key === last) return;
    last = key;
    line.setAttribute("x1", a.x);
    line.setAttribute("y1", a.y);
    line.setAttribute("x2", b.x);
    line.setAttribute("y2", b.y);
    const turn = (Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI;
    head.setAttribute("d", "M0 0 L-9 -4.5 L-9 4.5 Z");
    head.setAttribute("transform", `translate(${b.x} ${b.y}) rotate(${turn})`);
  };
  return { wire: group, draw };
}
