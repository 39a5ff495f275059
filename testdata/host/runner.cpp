// Runs one case (tests/kernels/program.rs says what that is) with a kernel
// source compiled for the host. Linked once a source; REGISTER lists its
// kernels as R(name).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <ucontext.h>
#include <vector>
#include "hipmini_host.h"
// In a namespace, since some kernels are called like libc functions.
namespace kernels {
#include "kernels.inc"
}

using Bytes = std::vector<unsigned char>;
thread_local Item item;
u32 wave_size = 64;
namespace kernels { alignas(64) float dyn[16384]; }

struct Fiber { ucontext_t context; Item item; bool done = false; Bytes stack; };
struct Group { ucontext_t back; std::vector<Fiber> fibers; size_t at = 0; void (*call)(void *); void *data; };
thread_local Group *running;

// Round robin gives every fiber the same number of turns between two barriers
// unless some spin; only kernels without spinning loads rely on the barrier.
thread_local size_t waiting;
thread_local u32 generation;
static void turn() {
  Group *g = running;
  g->fibers[g->at].item = item;
  swapcontext(&g->fibers[g->at].context, &g->back);
  item = g->fibers[g->at].item;
}
void switch_fiber(bool barrier) {
  if (!barrier) return turn();
  u32 mine = generation;
  waiting++;
  while (mine == generation) turn();
}
static void body() { Group *g = running; g->call(g->data); g->fibers[g->at].done = true; }

static void run_group(std::vector<Item> &items, void (*call)(void *), void *data) {
  Group g{{}, std::vector<Fiber>(items.size()), 0, call, data};
  running = &g; waiting = 0;
  for (size_t i = 0; i < items.size(); i++) {
    Fiber &f = g.fibers[i];
    f.item = items[i]; f.stack.resize(1 << 16);
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data(); f.context.uc_stack.ss_size = f.stack.size(); f.context.uc_link = &g.back;
    makecontext(&f.context, body, 0);
  }
  for (size_t left = items.size(); left;) {
    left = 0;
    for (g.at = 0; g.at < g.fibers.size(); g.at++) {
      if (g.fibers[g.at].done) continue;
      item = g.fibers[g.at].item;
      swapcontext(&g.back, &g.fibers[g.at].context);
      if (!g.fibers[g.at].done) left++;
    }
    // Ended work-items are no longer waited for.
    if (left && waiting >= left) { waiting = 0; generation++; }
  }
}

template <class T> T unpack(const Bytes &bytes) { T value{}; memcpy(&value, bytes.data(), bytes.size() < sizeof(T) ? bytes.size() : sizeof(T)); return value; }
template <class... A> struct Call { void (*f)(A...); std::tuple<A...> args; };
template <class... A, size_t... I>
static void launch_with(void (*f)(A...), std::vector<Bytes> &args, std::vector<std::vector<Item>> &groups, std::index_sequence<I...>) {
  if (args.size() != sizeof...(A)) { fprintf(stderr, "%zu arguments, want %zu\n", args.size(), sizeof...(A)); exit(1); }
  Call<A...> c{f, std::tuple<A...>{unpack<A>(args[I])...}};
  for (auto &group : groups)
    run_group(group, [](void *p) { auto *c = (Call<A...> *)p; std::apply(c->f, c->args); }, &c);
}
template <class... A> static void launch(void (*f)(A...), std::vector<Bytes> &args, std::vector<std::vector<Item>> &groups) {
  launch_with(f, args, groups, std::index_sequence_for<A...>{});
}

struct Launch { std::string kernel; u32 grid[3], block[3], dims, lds, queue; std::vector<Bytes> args; };
static void dispatch(Launch &l) {
  std::vector<std::vector<Item>> groups;
  u32 count[3];
  for (int d = 0; d < 3; d++) count[d] = (l.grid[d] + l.block[d] - 1) / l.block[d];
  for (u32 z = 0; z < count[2]; z++) for (u32 y = 0; y < count[1]; y++) for (u32 x = 0; x < count[0]; x++) {
    auto &items = groups.emplace_back();
    u32 g[3] = {x, y, z}, n[3];
    for (int d = 0; d < 3; d++) { u32 rest = l.grid[d] - g[d] * l.block[d]; n[d] = rest < l.block[d] ? rest : l.block[d]; }
    for (u32 k = 0; k < n[2]; k++) for (u32 j = 0; j < n[1]; j++) for (u32 i = 0; i < n[0]; i++)
      items.push_back({{i, j, k}, {x, y, z}, {l.block[0], l.block[1], l.block[2]}, {l.grid[0], l.grid[1], l.grid[2]}});
  }
#define R(name) if (l.kernel == #name) return launch(kernels::name, l.args, groups);
  REGISTER
  exit(77);
}

static Bytes from_hex(const std::string &text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) bytes.push_back(std::stoul(text.substr(i, 2), nullptr, 16));
  return bytes;
}
template <class T> static Bytes to_bytes(T value) { Bytes b(sizeof value); memcpy(b.data(), &value, sizeof value); return b; }

int main(int, char **argv) {
  std::string folder = std::string(argv[1]) + "/", line;
  std::ifstream in(folder + "case.txt");
  std::vector<Bytes> buffers; std::vector<Launch> launches;
  while (std::getline(in, line)) {
    std::istringstream words(line); std::string what; words >> what;
    if (what == "object") { std::string name, path, target; words >> name >> path >> target; wave_size = target == "gfx1100" ? 32 : 64; }
    if (what == "buffer") {
      std::string name; size_t size; words >> name >> size;
      Bytes bytes(size); std::ifstream(folder + name, std::ios::binary).read((char *)bytes.data(), size);
      buffers.push_back(std::move(bytes));
    }
    if (what == "launch") {
      Launch l; words >> l.kernel; for (u32 &g : l.grid) words >> g; for (u32 &b : l.block) words >> b;
      words >> l.dims >> l.lds >> l.queue; launches.push_back(std::move(l));
    }
    if (what == "arg") {
      std::string kind, text; words >> kind; auto &args = launches.back().args;
      if (kind == "buffer") { size_t n, offset; words >> n >> offset; args.push_back(to_bytes(buffers[n].data() + offset)); }
      if (kind == "value") { words >> text; args.push_back(from_hex(text)); }
      if (kind == "local") { size_t size; words >> size; args.push_back(to_bytes(calloc(1, size))); }
      if (kind == "struct") {
        words >> text; Bytes bytes = from_hex(text); std::string patch;
        while (words >> patch) { size_t colon = patch.find(':'); void *p = buffers[std::stoul(patch.substr(colon + 1))].data(); memcpy(&bytes[std::stoul(patch)], &p, 8); }
        args.push_back(bytes);
      }
    }
    if (what == "global") continue;
  }
  std::map<u32, std::vector<Launch *>> queues;
  for (auto &l : launches) queues[l.queue].push_back(&l);
  std::vector<std::thread> threads;
  for (auto &q : queues) threads.emplace_back([&] { for (Launch *l : q.second) dispatch(*l); });
  for (auto &t : threads) t.join();
  for (size_t i = 0; i < buffers.size(); i++)
    std::ofstream(folder + std::to_string(i), std::ios::binary).write((char *)buffers[i].data(), buffers[i].size());
  in.clear(); in.seekg(0);
  while (std::getline(in, line)) {
    std::istringstream words(line); std::string what, name; size_t size; words >> what >> name >> size;
    if (what != "global") continue;
    void *p = dlsym(RTLD_DEFAULT, ("_ZN7kernels" + std::to_string(name.size()) + name + "E").c_str());
    if (!p) { fprintf(stderr, "no variable %s\n", name.c_str()); return 1; }
    std::ofstream(folder + name, std::ios::binary).write((char *)p, size);
  }
}
