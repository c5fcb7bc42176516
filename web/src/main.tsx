import { render } from "preact";
import { start } from "./state";
import "./style.css";
import { App } from "./ui/app";

render(<App />, document.getElementById("app")!);
void start();
