import { defineConfig } from "vitest/config";

// Pure logic, without a browser or a server.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: { include: ["tests/*.test.ts"], environment: "jsdom" },
});
