import { fileURLToPath } from "node:url";

import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
// `npm run dev` shows the pages of this folder over the server of HEADRACE_URL.
const server = process.env["HEADRACE_URL"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": here("./src") } },
  build: {
    outDir: here("../src/headrace/server/static"),
    emptyOutDir: true,
    // Names carry a hash, so that a browser may keep them for good.
    assetsDir: "assets",
    // Files as they are: the content security policy allows no data in the place of scripts or styles.
    assetsInlineLimit: 0,
    target: "es2022",
  },
  server: {
    proxy: {
      // The server refuses acts that come from a page of another origin, and for it this page is at its own address.
      "/api": { target: server, changeOrigin: true, headers: { origin: server } },
      "/ws": { target: server, ws: true, changeOrigin: true, headers: { origin: server } },
    },
  },
});
