// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
'use strict';
(function () {
  const story = JSON.parse(document.getElementById('story').textContent);
  const element = (id) => document.getElementById(id);
  const rowHeight = 20, top = 50, width = 1240, idleNs = 1e6;
  const column = { time: 96, thread: [400, 870], queue: [460, 810] };
  const kinds = [
    ['call', 'calls', true], ['post', 'posts', true], ['packet', 'packets', true],
    ['acknowledgement', 'answers', true], ['completion', 'completions', true], ['poll', 'polls', true], ['wait', 'waits', false],
    ['event', 'events', true], ['finding', 'findings', true], ['other', 'calls for other objects', false],
  ];
  let limit = 1000;
  let chosen = null;

  document.querySelector('h1').textContent = document.title;

  function make(name, attributes, parent, text) {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  const hex = (number) => '0x' + number.toString(16);

  function programOf(number) {
    const found = story.processes.find((each) => each.number === number);
    if (number === 0) return 'not in the trace';
    return (found && found.program ? found.program : 'process') + ' ' + number;
  }

  function duration(ns) {
    if (ns < 1e3) return ns + ' ns';
    if (ns < 1e6) return (ns / 1e3).toFixed(1) + ' µs';
    return ns < 1e9 ? (ns / 1e6).toFixed(2) + ' ms' : (ns / 1e9).toFixed(3) + ' s';
  }

  // The side of the diagram on which an item stands: 0, 1, or -1 if it is not about this connection.
  function sides(connection) {
    const queues = [new Set(), new Set()];
    for (const item of story.items) {
      if (item.kind !== 'completion' || item.cq === undefined) continue;
      const side = connection.qps.indexOf(item.qp);
      if (side >= 0) queues[side].add(story.lanes[item.lane].process + item.cq);
    }
    return (item) => {
      if (item.kind === 'packet' || item.kind === 'acknowledgement') {
        const from = connection.qps.indexOf(item.qp), to = connection.qps.indexOf(item.to);
        return from >= 0 && to >= 0 ? from : -1;
      }
      const process = story.lanes[item.lane].process;
      const own = connection.qps.indexOf(item.qp);
      if (own >= 0) return own;
      if (item.qp === undefined && item.cq !== undefined) return queues.findIndex((each) => each.has(process + item.cq));
      return -1;
    };
  }

  function isShown(item, side, connection) {
    if (side < 0) {
      const process = story.lanes[item.lane].process;
      const unnamed = item.qp === undefined && connection.processes.includes(process);
      if (!unnamed || item.kind === 'request') return false;
      if (item.kind !== 'finding' && item.kind !== 'event' && !element('kind-other').checked) return false;
    }
    if (item.kind === 'request' && !item.bad) return false;
    const box = element('kind-' + item.kind);
    if (box && !box.checked) return false;
    if (element('bad').checked && !item.bad) return false;
    const word = element('find').value.toLowerCase();
    return word === '' || (item.name + JSON.stringify(item.details)).toLowerCase().includes(word);
  }

  // A packet has a row where it is sent and one where it arrives.
  function rowsOf(connection) {
    const sideOf = sides(connection);
    const rows = [];
    story.items.forEach((item, index) => {
      let side = sideOf(item);
      if (!isShown(item, side, connection)) return;
      if (side < 0) side = Math.max(0, connection.processes.indexOf(story.lanes[item.lane].process));
      rows.push({ time: item.begin, index, side, arrives: false });
      if (item.both) rows.push({ time: item.end, index, side, arrives: true });
    });
    return rows.sort((one, other) => one.time - other.time || one.index - other.index);
  }

  function arrowHead(group, x, y, direction) {
    make('path', { d: `M${x} ${y} l${-7 * direction} -4 v8 z` }, group);
  }

  function line(group, x1, y1, x2, y2) {
    make('line', { x1, y1, x2, y2 }, group);
    arrowHead(group, x2, y2, x2 > x1 ? 1 : -1);
  }

  function labelOf(item) {
    const words = [item.name], details = item.details;
    if (details.bytes !== undefined) words.push(details.bytes + ' B');
    if (details.wr_id !== undefined) words.push('wr_id ' + details.wr_id);
    if (details.psn !== undefined) words.push('PSN ' + details.psn);
    if (details.error !== undefined) words.push(details.error);
    if (item.kind === 'wait') words.push(duration(item.end - item.begin));
    const lane = story.lanes[item.lane];
    return words.join(', ') + (lane.thread !== 0 && lane.thread !== lane.process ? ' (' + lane.name + ')' : '');
  }

  function drawRow(row, y, arrivals, groups) {
    const item = story.items[row.index], side = row.side, outward = side === 0 ? -1 : 1;
    const group = make('g', { class: 'row ' + item.kind + (item.bad ? ' bad' : ''), 'data-item': row.index });
    make('rect', { class: 'hit', x: 0, y: y - rowHeight / 2, width, height: rowHeight }, group);
    make('text', { class: 'time', x: column.time, y: y + 4, 'text-anchor': 'end' }, group, (row.time / 1e3).toFixed(3));
    group.addEventListener('click', () => choose(row.index));
    (groups[row.index] = groups[row.index] || []).push(group);
    const thread = column.thread[side], queue = column.queue[side];
    if (item.kind === 'packet' || item.kind === 'acknowledgement') {
      const far = column.queue[1 - side];
      const end = arrivals[row.index];
      // Unseen at one end: half of the way.
      if (end === undefined) line(group, queue, y, item.both ? far : (queue + far) / 2, y);
      else line(group, queue, y, far, end);
      make('text', { x: queue - outward * 8, y: y - 3, 'text-anchor': side === 0 ? 'start' : 'end' }, group, labelOf(item));
      return group;
    }
    const text = { x: thread + outward * 10, y: y + 4, 'text-anchor': side === 0 ? 'end' : 'start' };
    make('text', text, group, labelOf(item));
    make('circle', { cx: item.kind === 'completion' ? queue : thread, cy: y, r: 4 }, group);
    if (item.kind === 'post') line(group, thread, y, queue, y);
    if (item.kind === 'poll') line(group, queue, y, thread, y);
    return group;
  }

  let groupsOfItems = {};

  function draw() {
    const connection = story.connections[element('connection').value];
    const diagram = element('diagram');
    diagram.replaceChildren();
    groupsOfItems = {};
    if (!connection) {
      element('count').textContent = 'The trace has no connection.';
      return;
    }
    const all = rowsOf(connection), rows = all.slice(0, limit);
    let y = top, before = null;
    const places = [], arrivals = {}, bands = [];
    for (const row of rows) {
      if (before !== null && row.time - before > idleNs) {
        bands.push([y + rowHeight, row.time - before]);
        y += 1.5 * rowHeight;
      }
      y += rowHeight;
      before = row.time;
      places.push(y);
      if (row.arrives) arrivals[row.index] = y;
    }
    const svg = make('svg', { width, height: y + top }, diagram);
    make('text', { class: 'head', x: column.time, y: 20, 'text-anchor': 'end' }, svg, 'time in µs');
    for (const side of [0, 1]) {
      const anchor = side === 0 ? 'end' : 'start';
      make('text', { class: 'head', x: column.thread[side], y: 20, 'text-anchor': anchor }, svg, programOf(connection.processes[side]));
      make('text', { class: 'head', x: column.queue[side], y: 38, 'text-anchor': 'middle' }, svg, 'QP ' + hex(connection.qps[side]));
      for (const x of [column.thread[side], column.queue[side]]) make('line', { class: 'life', x1: x, y1: 44, x2: x, y2: y + 20 }, svg);
    }
    for (const [at, ns] of bands) {
      make('rect', { class: 'band', x: 0, y: at - 8, width, height: 18 }, svg);
      make('text', { class: 'idle', x: (column.queue[0] + column.queue[1]) / 2, y: at + 5, 'text-anchor': 'middle' }, svg, duration(ns) + ' idle');
    }
    rows.forEach((row, i) => {
      if (!row.arrives) svg.appendChild(drawRow(row, places[i], arrivals, groupsOfItems));
    });
    element('count').textContent = rows.length < all.length ? `the first ${rows.length} of ${all.length} rows` : `${rows.length} rows`;
    if (rows.length < all.length) {
      const more = document.createElement('button');
      more.textContent = 'More rows';
      more.onclick = () => { limit *= 4; draw(); };
      diagram.appendChild(more);
    }
    mark();
  }

  // The items that arrows connect with the chosen one.
  function related(index) {
    const next = new Map();
    for (const [from, to] of story.arrows) {
      for (const [one, other] of [[from, to], [to, from]]) {
        if (!next.has(one)) next.set(one, []);
        next.get(one).push(other);
      }
    }
    const found = new Set([index]), open = [index];
    while (open.length > 0) {
      for (const each of next.get(open.pop()) || []) {
        if (found.has(each)) continue;
        found.add(each);
        // One poll may find the completions of many requests.
        if (story.items[each].kind !== 'poll') open.push(each);
      }
    }
    return found;
  }

  function mark() {
    const others = chosen === null ? new Set() : related(chosen);
    for (const index in groupsOfItems) {
      for (const group of groupsOfItems[index]) {
        group.classList.toggle('chosen', Number(index) === chosen);
        group.classList.toggle('related', Number(index) !== chosen && others.has(Number(index)));
      }
    }
  }

  function choose(index) {
    chosen = index;
    const item = story.items[index], table = document.createElement('table');
    const facts = { kind: item.kind, lane: story.lanes[item.lane].name, time: duration(item.begin) + ' after the beginning' };
    if (item.end !== item.begin) facts.duration = duration(item.end - item.begin);
    for (const key in item.details) {
      const value = item.details[key];
      facts[key] = typeof value === 'object' ? JSON.stringify(value, null, 1) : String(value);
    }
    for (const key in facts) {
      const row = table.insertRow();
      row.appendChild(document.createElement('th')).textContent = key;
      row.insertCell().textContent = facts[key];
    }
    const box = element('details').firstElementChild, title = document.createElement('b');
    title.textContent = item.name;
    box.replaceChildren(title, table);
    mark();
  }

  story.connections.forEach((each, i) => {
    const option = document.createElement('option');
    option.value = i;
    option.textContent = [0, 1].map((side) => programOf(each.processes[side]) + ' QP ' + hex(each.qps[side])).join(' – ');
    element('connection').appendChild(option);
  });
  for (const [kind, title, on] of kinds) {
    const label = document.createElement('label'), box = document.createElement('input');
    box.type = 'checkbox';
    box.id = 'kind-' + kind;
    box.checked = on;
    box.addEventListener('change', draw);
    label.append(box, ' ' + title);
    element('kinds').appendChild(label);
  }
  for (const id of ['connection', 'bad']) element(id).addEventListener('change', draw);
  element('find').addEventListener('input', draw);
  draw();
}());
