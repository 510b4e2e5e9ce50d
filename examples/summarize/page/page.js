"use strict";

// Everything that comes from elsewhere goes into the page as text, never as markup.
const at = (id) => document.getElementById(id);
const show = (id, text) => { at(id).textContent = text ?? "–"; };

const api = "/api/v1";
const ended = new Set(["completed", "failed", "cancelled", "rejected"]);
let source = null;
let claim = null; // of the attempt whose tokens are shown

async function call(method, path, body) {
  const answer = await fetch(api + path, {
    method,
    headers: body ? { "Content-Type": "application/json" } : {},
    body: body ? JSON.stringify(body) : undefined,
  });
  const found = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw new Error(found.detail ?? found.title);
  return found;
}

// The record in the words of the specification; the lane is the native API's to tell.
async function look(taskId, number) {
  const [record, native] = await Promise.all([call("GET", `/tasks/${taskId}`), call("GET", `/tasks/${number}`)]);
  show("state", record.state);
  show("lane", native.lane);
  show("retries", `${record.retry_count} of ${record.max_retries}`);
  show("retry_after", record.retry_after && new Date(record.retry_after).toLocaleTimeString());
  show("last_error", record.last_error && `${record.error_type}: ${record.last_error}`);
  show("result", record.result);
  at("retry").hidden = !["FAILED", "DLQ"].includes(record.state);
}

function watch(taskId) {
  source?.close();
  claim = null;
  show("tokens", "");
  // The browser comes back by itself after a break, and goes on behind the last event that it has seen.
  source = new EventSource(`${api}/live/tasks/${taskId}`);
  source.addEventListener("task_update", (event) => {
    const update = JSON.parse(event.data);
    const progress = update.progress;
    show("progress", progress && `${progress.value} of ${progress.total ?? "?"} ${progress.message ?? ""}`);
    look(taskId, update.task).catch((error) => show("refusal", error.message));
    if (ended.has(update.status)) source.close();
  });
  source.addEventListener("task_stream_value", (event) => {
    const { value, claim_no: number } = JSON.parse(event.data);
    if (number !== claim) {
      claim = number; // another attempt begins anew
      show("tokens", "");
    }
    at("tokens").append(value.text);
  });
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  show("refusal", "");
  try {
    const { task_id: taskId } = await call("POST", "/tasks/summarize/", { content: at("content").value });
    at("task").hidden = false;
    show("task_id", taskId);
    watch(taskId);
  } catch (error) {
    show("refusal", error.message);
  }
});

at("retry").addEventListener("click", async () => {
  const taskId = at("task_id").textContent;
  try {
    await call("POST", `/tasks/${taskId}/retry`);
    watch(taskId);
  } catch (error) {
    show("refusal", error.message);
  }
});
