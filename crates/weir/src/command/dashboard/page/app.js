// The page about a running gateway. Names come from lists and from the network: they are only ever text.
'use strict';

const ROW = 28; // height of a row in pixels, as in style.css
const RECENT = 600; // seconds of the rate that are kept of each row
const byId = (id) => document.getElementById(id);
const make = (tag, text, type) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (type) element.className = type;
  return element;
};

// Things by kind and name, each with both directions.
const things = new Map();
let flows = [];
let view = 'customer';
let sort = { column: 'down', up: false };
let chosen = null;
let shown = [];

const SPANS = [[24, 'Day'], [168, 'Week'], [720, 'Month'], [8760, 'Year']]; // hours of history
const VIEWS = [['link', 'Link'], ['site', 'Sites'], ['customer', 'Customers'], ['class', 'Classes'], ['unlisted', 'Unlisted'], ['flow', 'Flows']];

const sum = (thing, key) => (thing.in?.[key] ?? 0) + (thing.out?.[key] ?? 0);
// Round-trip times are those of the direction with more samples.
const samples = (load) => (load?.rtt_wan_us?.samples ?? 0) + (load?.rtt_lan_us?.samples ?? 0);
const times = (thing) => (samples(thing.out) > samples(thing.in) ? thing.out : thing.in);
const rtt = (side, quantile) => (thing) => {
  if (thing.flow) return thing.flow[side]?.smoothed || null;
  const time = times(thing)?.[side];
  return time?.samples ? time[quantile] : null;
};
const PARTS = ['tcp_controlled_bytes', 'tcp_passed_bytes', 'unresponsive_bytes'];
// Bytes that waited in a queue are not told apart. Bytes of a link have headers, which its parts have not.
const toldApart = (load) => (load ? Math.min(PARTS.reduce((n, key) => n + load[key], 0), load.bytes - load.queued_bytes) : 0);
const unresponsive = (thing) => share(sum(thing, 'unresponsive_bytes'), toldApart(thing.in) + toldApart(thing.out));
const share = (part, whole) => (whole > 0 ? part / whole : null);

const mbit = (bps) => (bps === null ? '–' : bps === 0 ? '0' : (bps / 1e6).toPrecision(bps < 1e9 ? 3 : 4).replace(/e\+?/, 'e'));
// Who is off has no rate.
const target = (way) => (t) => ((t.in ?? t.out)?.off ? 0 : t[way]?.target_bps || null);
const limit = (bps) => (bps === 0 ? 'off' : mbit(bps));
const number = (n) => (n === null ? '–' : n.toLocaleString('en'));
const ms = (us) => (us === null ? '–' : us < 1e5 ? (us / 1e3).toFixed(1) : (us / 1e3).toFixed(0));
const percent = (x) => (x === null ? '–' : (x * 100).toFixed(x > 0 && x < 0.1 ? 1 : 0));
const bytes = (n) => {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit += 1; }
  return (unit ? n.toFixed(1) : n) + ' ' + units[unit];
};

// Columns: key, head, value, form, and whether narrow screens leave them out.
const COLUMNS = [
  ['name', 'Name', (t) => t.name, (x) => x, ''],
  ['title', 'Title', (t) => t.title, (x) => x, 'wide'],
  ['down', 'Down Mbit/s', (t) => t.in?.bps ?? 0, mbit, ''],
  ['downof', 'of', target('in'), limit, 'wide'],
  ['up', 'Up Mbit/s', (t) => t.out?.bps ?? 0, mbit, ''],
  ['upof', 'of', target('out'), limit, 'wide'],
  ['other', 'Not TCP %', unresponsive, percent, 'wide'],
  ['dropped', 'Dropped', (t) => sum(t, 'dropped_packets'), number, 'wide'],
  ['resent', 'Resent %', (t) => (t.flow ? null : share(sum(t, 'retransmitted_packets'), sum(t, 'packets'))), percent, ''],
  ['wan50', 'WAN ms', rtt('rtt_wan_us', 'p50'), ms, ''],
  ['wan99', 'p99', rtt('rtt_wan_us', 'p99'), ms, 'wide'],
  ['lan50', 'LAN ms', rtt('rtt_lan_us', 'p50'), ms, 'wide'],
  ['lan99', 'p99', rtt('rtt_lan_us', 'p99'), ms, 'wide'],
  ['web', 'Web', (t) => times(t)?.score?.web ?? null, number, ''],
  ['flows', 'Flows', (t) => sum(t, 'active_flows'), number, 'wide'],
];
const column = (key) => COLUMNS.find((c) => c[0] === key);

function take(row) {
  const key = row.kind + '\n' + row.name;
  let thing = things.get(key);
  if (!thing) {
    thing = { key, kind: row.kind, name: row.name, title: '', recent: { in: [], out: [] } };
    things.set(key, thing);
  }
  if (row.title) thing.title = row.title;
  thing.low = (thing.name + ' ' + thing.title).toLowerCase();
  thing[row.direction] = row;
}

// A flow as a thing, in the direction of its data.
function flowThing(flow) {
  const load = { bps: flow.bps, bytes: flow.bytes, target_bps: flow.target_bps ?? 0, active_flows: 1 };
  const thing = { key: 'flow\n' + flow.name, kind: 'flow', name: flow.name, title: flow.class, flow, recent: { in: [], out: [] } };
  thing.low = (flow.name + ' ' + flow.class).toLowerCase();
  thing[flow.direction === 'in' ? 'in' : 'out'] = load;
  return thing;
}

function list() {
  const text = byId('search').value.trim().toLowerCase();
  const all = view === 'flow' ? flows : [...things.values()].filter((t) => t.kind === view || (view === 'unlisted' && t.kind === 'address'));
  const found = text ? all.filter((t) => t.low.includes(text)) : all;
  const value = column(sort.column)[2];
  const keyed = found.map((t) => [value(t), t]);
  const way = sort.up ? 1 : -1;
  keyed.sort(([a, s], [b, t]) => {
    if (a === b || (a === null && b === null)) return s.name < t.name ? -1 : 1;
    if (a === null) return 1;
    if (b === null) return -1;
    if (typeof a === 'string') return way * (a < b ? -1 : 1);
    return way * (a - b);
  });
  return keyed.map(([, t]) => t);
}

function heads() {
  const row = byId('heads');
  row.replaceChildren();
  for (const [key, head, , , type] of COLUMNS) {
    const cell = make('th', undefined, type);
    const button = make('button', head + (sort.column === key ? (sort.up ? ' ▲' : ' ▼') : ''));
    button.type = 'button';
    button.addEventListener('click', () => {
      sort = { column: key, up: sort.column === key ? !sort.up : key === 'name' || key === 'title' };
      heads();
      draw();
      row.children[COLUMNS.findIndex((c) => c[0] === key)].firstChild.focus();
    });
    cell.setAttribute('scope', 'col');
    cell.setAttribute('aria-sort', sort.column === key ? (sort.up ? 'ascending' : 'descending') : 'none');
    cell.append(button);
    row.append(cell);
  }
}

const isFull = (load) => load && load.target_bps > 0 && load.bps >= 0.9 * load.target_bps;

// Only the rows that can be seen are in the document.
function draw() {
  shown = list();
  byId('count').textContent = shown.length.toLocaleString('en') + ' rows';
  drawRows();
}

function drawRows() {
  const box = byId('table');
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 5);
  const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / ROW) + 10);
  const body = document.createDocumentFragment();
  const pad = (rows) => {
    const row = make('tr', undefined, 'pad');
    row.style.height = rows * ROW + 'px';
    row.setAttribute('aria-hidden', 'true');
    return row;
  };
  if (first > 0) body.append(pad(first));
  for (let i = first; i < last; i += 1) {
    const thing = shown[i];
    const type = [i % 2 ? 'even' : '', isFull(thing.in) || isFull(thing.out) ? 'full' : '', chosen === thing.key ? 'chosen' : ''];
    const row = make('tr', undefined, type.join(' '));
    row.dataset.place = i;
    for (const [key, , value, form, wide] of COLUMNS) {
      const cell = make('td', form(value(thing)), wide);
      if (key === 'name' || key === 'title') cell.title = value(thing);
      row.append(cell);
    }
    body.append(row);
  }
  if (last < shown.length) body.append(pad(shown.length - last));
  byId('rows').replaceChildren(body);
}

// A chart of lines over steps: the newest is on the right.
function chart(title, unit, lines, label) {
  const space = 'http://www.w3.org/2000/svg';
  const part = (tag, attributes, text) => {
    const element = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const figure = make('figure');
  const most = Math.max(...lines.flatMap(([values]) => values), 0);
  figure.append(make('figcaption', title + ': at most ' + (most ? most.toPrecision(3) : '0') + ' ' + unit));
  const svg = part('svg', { viewBox: '0 0 400 120', preserveAspectRatio: 'none', role: 'img', 'aria-label': title });
  svg.append(part('path', { class: 'axis', d: 'M0 1H400M0 60H400M0 119H400' }));
  for (const [values, type] of lines) {
    if (values.length < 2) continue;
    const x = (i) => (400 * i) / (values.length - 1);
    const y = (v) => 119 - (118 * v) / (most || 1);
    svg.append(part('path', { class: type, d: 'M' + values.map((v, i) => x(i).toFixed(1) + ' ' + y(v).toFixed(1)).join('L'), 'vector-effect': 'non-scaling-stroke' }));
  }
  figure.append(svg, make('figcaption', label));
  return figure;
}

function facts(thing) {
  const rows = [];
  const put = (name, text) => rows.push(make('dt', name), make('dd', text));
  for (const [way, load] of [['Down', thing.in], ['Up', thing.out]]) {
    if (!load) continue;
    put(way, mbit(load.bps) + (load.target_bps ? ' of ' + mbit(load.target_bps) : '') + ' Mbit/s');
    put(way + ', so far', bytes(load.bytes));
    if (thing.flow) continue;
    if (load.queued_bytes) put(way + ': queued', bytes(load.queued_bytes));
    if (toldApart(load)) put(way + ': TCP held, passed, not TCP', PARTS.map((key) => bytes(load[key])).join(', '));
    put(way + ': dropped, marked, sent again', [load.dropped_packets, load.marked_packets, load.retransmitted_packets].map(number).join(', '));
    for (const [side, time] of [['WAN', load.rtt_wan_us], ['LAN', load.rtt_lan_us]]) {
      if (time?.samples) put(way + ': RTT of the ' + side + ', p50, p90, p99', [time.p50, time.p90, time.p99].map(ms).join(', ') + ' ms');
    }
    if (load.score) put(way + ': score of web, calls, games', [load.score.web, load.score.call, load.score.game].join(', '));
  }
  if (thing.flow) {
    const { rtt_wan_us: wan, rtt_lan_us: lan } = thing.flow;
    const all = (time) => [time.min, time.smoothed, time.last].map((us) => ms(us || null)).join(', ') + ' ms';
    put('RTT of the WAN: least, smoothed, last', all(wan));
    put('RTT of the LAN: least, smoothed, last', all(lan));
    put('Sent again, out of order', number(thing.flow.retransmitted_packets) + ', ' + number(thing.flow.reordered_packets));
    put('Held here', ms(thing.flow.ack_held_us) + ' ms, ' + bytes(thing.flow.held_bytes));
    put('Windows closed, set-up', number(thing.flow.zero_windows) + ', ' + ms(thing.flow.set_up_us || null) + ' ms');
    if (thing.flow.pass_reason) put('Passes untouched', thing.flow.pass_reason);
  }
  byId('facts').replaceChildren(...rows);
}

let past = null; // history of what is chosen
let hours = 24; // its length

function details() {
  const thing = view === 'flow' ? flows.find((t) => t.key === chosen) : things.get(chosen);
  byId('details').hidden = !thing;
  if (!thing) return;
  byId('name').textContent = thing.kind + ' ' + thing.name + (thing.title ? ' – ' + thing.title : '');
  facts(thing);
  const charts = [];
  const mega = (values) => values.map((bps) => bps / 1e6);
  const milli = (values) => values.map((us) => us / 1e3);
  if (!thing.flow) {
    charts.push(chart('Rate now', 'Mbit/s', [[mega(thing.recent.in), 'down'], [mega(thing.recent.out), 'up']], 'last ten minutes; line: down, dashed: up'));
  }
  if (past && past.key === chosen && past.down_bps.length > 1) {
    const length = (past.down_bps.length * past.step_s) / 3600;
    const label = 'last ' + (length > 48 ? (length / 24).toFixed(0) + ' days' : length.toFixed(1) + ' hours');
    charts.push(chart('Rate', 'Mbit/s', [[mega(past.down_bps), 'down'], [mega(past.up_bps), 'up']], label + '; line: down, dashed: up'));
    charts.push(chart('RTT of the WAN', 'ms', [[milli(past.rtt_wan_p50_us), 'down'], [milli(past.rtt_wan_p99_us), 'up']], label + '; line: median, dashed: 99th percentile'));
    charts.push(chart('RTT of the LAN, 99th percentile', 'ms', [[milli(past.rtt_lan_p99_us), 'down']], label));
    charts.push(chart('Packets sent again', '%', [[past.resent_ppm.map((ppm) => ppm / 1e4), 'down']], label));
  }
  byId('charts').replaceChildren(...charts);
}

function choose(key) {
  chosen = chosen === key ? null : key;
  hours = 24;
  drawRows();
  ask();
}

// Asks for the history of what is chosen, and says why there is none.
async function ask() {
  const [key, span] = [chosen, hours];
  past = null;
  byId('no-past').textContent = '';
  spans();
  details();
  const thing = things.get(key);
  if (!thing) return;
  const query = new URLSearchParams({ kind: thing.kind, name: thing.name, hours: span });
  try {
    const answer = await fetch('/api/v1/history?' + query);
    const told = await answer.json();
    if (chosen !== key || hours !== span) return;
    if (answer.ok) past = { key, ...told };
    else byId('no-past').textContent = told.error;
  } catch { /* the stream says that there is no answer */ }
  details();
}

function spans() {
  byId('spans').replaceChildren(...SPANS.map(([span, name]) => {
    const button = make('button', name);
    button.type = 'button';
    button.setAttribute('aria-pressed', String(span === hours));
    button.addEventListener('click', () => {
      hours = span;
      ask();
      byId('spans').children[SPANS.findIndex(([of]) => of === span)].focus();
    });
    return button;
  }));
}

function views() {
  byId('views').replaceChildren(...VIEWS.map(([kind, name]) => {
    const button = make('button', name);
    button.type = 'button';
    button.setAttribute('aria-pressed', String(kind === view));
    button.addEventListener('click', () => {
      view = kind;
      byId('table').scrollTop = 0;
      views();
      draw();
      details();
    });
    return button;
  }));
}

function state(now) {
  const bad = now.failure ? 'no answer: ' + now.failure : now.degraded ? 'degraded: ' + now.degraded : null;
  byId('state').textContent = bad ?? 'runs for ' + Math.round(now.wall_s).toLocaleString('en') + ' s, ' + now.restarts + ' restarts' + (now.observes ? ', observes: dropped is what would be' : '');
  byId('state').className = bad ? 'bad' : '';
  byId('events').replaceChildren(...now.events.map((event) => {
    const item = make('li');
    item.append(make('time', new Date(event.unix_s * 1000).toLocaleString()), event.text);
    return item;
  }));
}

let last = 0; // milliseconds that the last update took

function heard(news) {
  const begin = performance.now();
  if (news.begins) things.clear();
  news.traffic.forEach(take);
  flows = news.flows.map(flowThing);
  if (news.begins && view === 'customer' && ![...things.values()].some((t) => t.kind === 'customer')) {
    view = 'class';
    views();
  }
  for (const thing of things.values()) {
    for (const way of ['in', 'out']) {
      const recent = thing.recent[way];
      if (thing[way] && (thing.key === chosen || thing.kind === 'link')) recent.push(thing[way].bps);
      if (recent.length > RECENT) recent.shift();
    }
  }
  state(news.state);
  byId('passed').replaceChildren(...Object.entries(news.passed).flatMap(([why, n]) => [make('dt', why), make('dd', number(n))]));
  draw();
  details();
  last = performance.now() - begin;
  document.body.dataset.updateMs = last.toFixed(1);
}

function listen() {
  const source = new EventSource('/api/v1/stream');
  source.addEventListener('message', (event) => heard(JSON.parse(event.data)));
  source.addEventListener('error', () => {
    byId('state').textContent = 'the page is no longer connected to weir dashboard';
    byId('state').className = 'bad';
  });
}

byId('search').addEventListener('input', () => { byId('table').scrollTop = 0; draw(); });
byId('table').addEventListener('scroll', () => requestAnimationFrame(drawRows));
byId('rows').addEventListener('click', (event) => {
  const row = event.target.closest('tr[data-place]');
  if (row) choose(shown[row.dataset.place].key);
});
byId('close').addEventListener('click', () => choose(chosen));
document.addEventListener('keydown', (event) => {
  const typing = event.target === byId('search');
  if (event.key === 'Escape') {
    if (typing && byId('search').value) { byId('search').value = ''; draw(); } else if (chosen) choose(chosen);
  } else if (!typing && event.key === '/') {
    event.preventDefault();
    byId('search').focus();
  } else if (!typing && event.target === byId('table') && ['j', 'k', 'Enter'].includes(event.key)) {
    const at = shown.findIndex((t) => t.key === chosen);
    const next = shown[event.key === 'k' ? Math.max(0, at - 1) : Math.min(shown.length - 1, at + 1)];
    if (next && next.key !== chosen) choose(next.key);
  }
});

new PerformanceObserver((list) => {
  for (const { name, startTime } of list.getEntries()) document.body.dataset[name === 'first-paint' ? 'paintMs' : 'contentMs'] = startTime.toFixed(1);
}).observe({ type: 'paint', buffered: true });
views();
heads();
listen();
