import { defineConfig } from "vite";

// The page is served from the program at /, its parts at /page/. File names carry no hash: the server sends an ETag.
export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    assetsDir: "page",
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "page/app.js",
        chunkFileNames: "page/[name].js",
        assetFileNames: "page/[name][extname]",
      },
    },
  },
  // For `npm run dev`: a server that runs elsewhere.
  server: { proxy: Object.fromEntries(["/v1", "/props", "/slots", "/metrics", "/live", "/health"].map((path) => [path, "http://127.0.0.1:8080"])) },
});
