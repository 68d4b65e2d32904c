// Runs before any script, in a context of its own; what scripts must not reach is in this function's scope.
// Everything that is called after a script has run was taken hold of here, before it.
// No bracket stands in front: the compiler would look for the end of what it holds before it reads it.
0, function (write) {
  "use strict";
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const slice = uncurry(String.prototype.slice);
  const wellFormed = uncurry(String.prototype.toWellFormed);
  const stringify = JSON.stringify;
  const text = String;
  const { freeze, keys } = Object;
  const { isArray } = Array;

  // One clock reading and one seed a call: the same event meets the same script in the same state.
  let now = NaN;
  let a = 0, b = 0, c = 0, d = 1;

  const Real = Date;
  const construct = Reflect.construct;
  const Clock = function Date(...given) {
    if (!new.target) return text(new Real(now));
    return construct(Real, given.length ? given : [now], new.target);
  };
  for (const name of ["parse", "UTC"]) {
    Object.defineProperty(Clock, name, { value: Real[name], writable: true, configurable: true });
  }
  Object.defineProperty(Clock, "now", { value: { now() { return now; } }.now, writable: true, configurable: true });
  Object.defineProperty(Clock, "length", { value: 7, configurable: true });
  Object.defineProperty(Clock, "prototype", { value: Real.prototype, writable: false });
  Object.defineProperty(Real.prototype, "constructor", { value: Clock, writable: true, configurable: true });
  Object.defineProperty(globalThis, "Date", { value: Clock, writable: true, configurable: true });

  // sfc32
  let warm = false;
  const next = function () {
    if (!warm) {
      warm = true;
      for (let i = 0; i < 12; i++) next();
    }
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return t >>> 0;
  };
  Object.defineProperty(Math, "random", {
    value: { random() { return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992; } }.random,
    writable: true, configurable: true,
  });

  // No code from text, nothing shared between threads, no loose ends of a host.
  for (const name of [
    "eval", "SharedArrayBuffer", "Atomics", "performance", "navigator", "queueMicrotask", "DOMException", "gc",
    "WeakRef", "FinalizationRegistry", "print", "console",
  ]) delete globalThis[name];

  // The console keeps the beginning of what is written.
  let room = 4096;
  const shown = function (value) {
    if (typeof value === "string") return value;
    if (typeof value === "object" && value !== null) {
      try {
        const json = stringify(value);
        if (typeof json === "string") return json;
      } catch {}
      return "[object]";
    }
    return typeof value === "function" ? "[function]" : text(value);
  };
  const log = function (given) {
    if (room <= 0) return;
    let line = "";
    for (let i = 0; i < given.length && line.length <= room; i++) {
      if (i > 0) line += " ";
      line += slice(shown(given[i]), 0, room);
    }
    line = slice(line, 0, room);
    room = write(wellFormed(line));
  };
  const console = {};
  for (const name of ["log", "error", "warn", "info", "debug", "trace"]) {
    console[name] = { [name](...given) { log(given); } }[name];
  }
  Object.defineProperty(globalThis, "console", { value: console, writable: true, configurable: true });

  return {
    // Freezes the event at every level and sets what this call sees as time and chance.
    begin(event, time, low, high) {
      now = time;
      a = low; b = high;
      const todo = [event];
      while (todo.length > 0) {
        const value = todo.pop();
        if (typeof value !== "object" || value === null) continue;
        freeze(value);
        if (isArray(value)) {
          for (let i = 0; i < value.length; i++) if (typeof value[i] === "object") todo.push(value[i]);
        } else {
          const names = keys(value);
          for (let i = 0; i < names.length; i++) {
            const member = value[names[i]];
            if (typeof member === "object") todo.push(member);
          }
        }
      }
      return event;
    },
    // What was thrown, as [text, stack].
    describe(thrown) {
      let what = "", stack = "";
      if (typeof thrown === "object" && thrown !== null) {
        const name = thrown.name, message = thrown.message, trace = thrown.stack;
        if (typeof name === "string") what = slice(name, 0, 100);
        if (typeof message === "string" && message !== "") {
          what = (what === "" ? "" : what + ": ") + slice(message, 0, 400);
        }
        if (typeof trace === "string") stack = slice(trace, 0, 2000);
        if (what === "") what = "an object was thrown";
      } else {
        what = slice(text(thrown), 0, 400) + " was thrown";
      }
      return [wellFormed(what), wellFormed(stack)];
    },
  };
}
