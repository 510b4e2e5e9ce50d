// Starts to measure how long frames take. Gives an object that is asked for the frames and stopped by `measured()`.
() => {
  const frames = [];
  let last = performance.now();
  let going = true;
  const tick = (now) => {
    frames.push(now - last);
    last = now;
    if (going) requestAnimationFrame(tick);
  };
  requestAnimationFrame((now) => {
    last = now;
    requestAnimationFrame(tick);
  });
  window.measured = () => {
    going = false;
    const sorted = [...frames].sort((one, other) => one - other);
    const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Infinity;
    return { count: frames.length, p50: at(0.5), p95: at(0.95), longest: sorted.at(-1) ?? Infinity, sum: frames.reduce((a, b) => a + b, 0) };
  };
}
