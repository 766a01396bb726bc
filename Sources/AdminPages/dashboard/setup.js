// Client setup: lines to copy, for each kind of client.
import { h } from "./dom.js";
import { get } from "./api.js";

export const setup = {
  topics: [],
  title: () => "Set up a client",
  async load() {
    const [status, clients, pac, certificate] = await Promise.all([get("/v1/status"), get("/v1/clients"), there("/proxy.pac"), there("/ca.pem")]);
    return { upstreams: status.upstreams, gateways: clients.gateways, pac: await pac?.text(), hasCertificate: certificate !== null };
  },
  view({ upstreams, gateways, pac, hasCertificate }, pool) {
    const places = upstreams.filter((one) => gateways[one.name]);
    const proxy = /PROXY ([^;"\s]+)/.exec(pac ?? "")?.[1] ?? "127.0.0.1:7625";
    return [
      h("h1", {}, "Set up a client"),
      h("p", { class: "lead" }, "Any client with proxy support works unchanged. ",
        h("code", {}, proxy), pac ? " is the address of this proxy." : " is the default address of the proxy."),
      step("One command, one shell", "Sets the variables that common clients read, including those for certificates.", [
        snippet("Run one command with it", "rockpool run -- npm test", pool), snippet("A shell", 'eval "$(rockpool env)"', pool)]),
      step("By hand", "The variables that most clients read.", [
        snippet("Shell", `export http_proxy=http://${proxy} https_proxy=http://${proxy}`, pool),
        snippet("curl", `curl -x http://${proxy} ${upstreams[0]?.origin ?? "http://api.example.com"}/`, pool),
        snippet("git", `git config --global http.proxy http://${proxy}`, pool)]),
      places.length === 0 ? null : step("Another base URL", "A client that takes the address of its API needs no proxy: give it that of the gateway.",
        places.map((one) => snippet(`In place of ${one.origin}`, `http://${gateways[one.name]}`, pool))),
      step("A browser", "Set the address of the proxy settings file (PAC); it selects the requests for this proxy.", [
        pac ? snippet("Proxy settings file", `${location.origin}/proxy.pac`, pool) : h("p", { class: "quiet" }, "This server offers no ", h("code", {}, "/proxy.pac"), ".")]),
      step("HTTPS", "For HTTPS responses while offline, a client must trust this installation's own certificate authority. Its key never leaves this machine.", [
        hasCertificate
          ? [h("p", {}, h("a", { class: "button", href: "/ca.pem", download: "rockpool-ca.pem" }, "Download the certificate")), snippet("Or install it with a command", "rockpool ca install", pool)]
          : [h("p", {}, "There is no certificate authority yet."), snippet("Create one", "rockpool ca init", pool)]]),
      step("Declare an upstream", "Declaring it permits Rockpool to store its responses for offline use and to queue its writes.", [
        snippet("One command, applied at once", "rockpool add https://api.example.com", pool),
        snippet("rockpool.yaml", "upstreams:\n  - name: notes\n    origin: https://api.example.com\n    gateway: 127.0.0.1:7630   # plain HTTP in front of it", pool),
        snippet("Check the configuration, and reload it without a restart", "rockpool config check rockpool.yaml && rockpool reload", pool)]),
    ];
  },
};

const step = (title, words, content) => h("section", { class: "step" }, h("h2", {}, title), h("p", { class: "quiet" }, words), content);

async function there(target) {
  try {
    const answer = await fetch(target, { cache: "no-store" });
    return answer.ok ? answer : null;
  } catch {
    return null;
  }
}

function snippet(name, text, pool) {
  return h("div", { class: "snippet", "data-key": name },
    h("p", { class: "small" }, name),
    h("pre", { tabindex: 0, "aria-label": name }, text),
    h("button", { class: "button small", "aria-label": `Copy: ${name}`, onclick: async () => {
      await navigator.clipboard.writeText(text).then(() => pool.say("Copied."), () => pool.say("Copying is not allowed here; select the text.", "bad"));
    } }, "Copy"));
}
