/** Filters live in the address: a link shows what its sender saw, and «back» goes back. */

import { useCallback } from "react";
import { useSearchParams } from "react-router";

/**
 * One parameter of the query; the default is not written into the address.
 * Changing it replaces the entry of the history: who types does not want to go back through every letter.
 */
export function useQueryState<Value extends string = string>(
  name: string,
  fallback: NoInfer<Value>,
): readonly [Value, (value: Value) => void] {
  const [parameters, setParameters] = useSearchParams();
  const change = useCallback(
    (value: Value) => {
      setParameters((before) => withParameter(before, name, value === fallback ? [] : [value]), { replace: true });
    },
    [setParameters, name, fallback],
  );
  return [(parameters.get(name) as Value | null) ?? fallback, change];
}

/** A parameter that may stand there more than once: ?queue=mail&queue=reports */
export function useQueryList(name: string): readonly [readonly string[], (values: readonly string[]) => void] {
  const [parameters, setParameters] = useSearchParams();
  const change = useCallback(
    (values: readonly string[]) => {
      setParameters((before) => withParameter(before, name, values), { replace: true });
    },
    [setParameters, name],
  );
  return [parameters.getAll(name), change];
}

/** The same parameters, but for one. */
export function withParameter(before: URLSearchParams, name: string, values: readonly string[]): URLSearchParams {
  const after = new URLSearchParams(before);
  after.delete(name);
  for (const value of values) after.append(name, value);
  return after;
}
