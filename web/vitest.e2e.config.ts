import { defineConfig } from "vitest/config";

// The page in Chromium against the real server, one file after the other: they share two cores.
export default defineConfig({
  test: { include: ["e2e/*.e2e.ts"], testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false, pool: "forks" },
});
