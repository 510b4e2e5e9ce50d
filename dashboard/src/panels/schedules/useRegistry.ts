import { useQuery } from "@tanstack/react-query";

import { api, call } from "@/api";

/** The tasks that the server knows, with what they take. */
export function useRegistry() {
  return useQuery({
    queryKey: ["registry"],
    queryFn: ({ signal }) => call(api.GET("/api/v1/registry", { signal })),
    staleTime: 60_000,
  });
}
