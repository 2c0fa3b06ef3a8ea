#include "card/pci/keeper_client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/child_process.h"
#include "card/pci/keeper.h"

namespace rodeo::card::pci {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kAnswerTime{5'000};
constexpr milliseconds kPinTime{60'000};
constexpr milliseconds kStartTime{10'000};

std::unexpected<Error> failed(std::string code, std::string what, std::string where = {}, std::string next = {}) {
  return std::unexpected(Error{std::move(code), std::move(what), std::move(where), std::move(next)});
}

/// The program to start: RODEO_KEEPER; or this program if its name is rodeo; or a rodeo beside it or beside the library; or
/// rodeo from PATH.
std::string keeper_program() {
  if (const char* own = std::getenv("RODEO_KEEPER"); own != nullptr && *own != '\0') return own;
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  if (self.filename() == "rodeo") return self.string();
  std::vector<fs::path> beside{self.parent_path() / "rodeo"};
  Dl_info library{};
  if (::dladdr(reinterpret_cast<const void*>(&keeper_program), &library) != 0 && library.dli_fname != nullptr) {
    const fs::path directory = fs::absolute(library.dli_fname, failure).parent_path();
    beside.push_back(directory / "rodeo");
    beside.push_back(directory.parent_path() / "bin" / "rodeo");
    beside.push_back(directory.parent_path().parent_path() / "bin" / "rodeo");
  }
  for (const fs::path& path : beside) {
    if (::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path, failure)) return path.string();
  }
  return "rodeo";
}

/// Starts a keeper and waits for its answer on a pipe: "ready", or its error. The keeper has a session of its own, and
/// neither the starter's directory nor its terminal.
Result<void> start_keeper() {
  auto pipe = base::make_pipe();
  if (!pipe) return failed("card.keeper", pipe.error().what);
  auto [read_end, write_end] = *std::move(pipe);
  const std::string program = keeper_program();
  const auto socket = RODEO_TRY(keeper_socket());
  std::error_code failure;
  fs::create_directories(socket.parent_path(), failure);
  const std::string log = (socket.parent_path() / "keeper.log").string();
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return failed("card.keeper", fmt::format("cannot open /dev/null: {}", std::strerror(errno)));
  const Descriptor err(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  {
    const auto starter = base::ChildProcess::start(
        {.command = {program, "card", "keep", "--ready", fmt::format("{}", write_end.get())},
         .in = null.get(),
         .out = null.get(),
         .err = err ? err.get() : null.get(),
         .when_we_end = 0,
         .first = [ready = write_end.get()] {
           if (::setsid() < 0) return false;
           const pid_t keeper = ::fork();
           if (keeper < 0) return false;
           if (keeper > 0) ::_exit(0);
           sigset_t none;
           sigemptyset(&none);
           ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // older kernels lack this call
           return ::chdir("/") == 0 && ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0 && ::fcntl(ready, F_SETFD, 0) == 0;
         }});
    if (!starter) return failed("card.keeper", starter.error().what, "", "RODEO_KEEPER names the program");
  }
  write_end.reset();
  std::string said;
  const auto until = Clock::now() + kStartTime;
  while (true) {
    pollfd readable{read_end.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    if (left.count() <= 0)
      return failed("card.timeout", fmt::format("the keeper was not ready within {} s", kStartTime.count() / 1000), program,
                    "see " + log);
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 4096> piece{};
    const ssize_t got = ::read(read_end.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said.append(piece.data(), static_cast<std::size_t>(got));
  }
  if (said == "ready") return {};
  if (said.empty())
    return failed("card.keeper", fmt::format("cannot start the keeper: `{} card keep` ended at once", program), log,
                  "start it by hand and read its messages; RODEO_KEEPER names the program");
  RODEO_TRY(decode_reply(std::as_bytes(std::span(said)), KeeperOperation::status));
  return {};
}

}  // namespace

Result<std::unique_ptr<KeeperClient>> KeeperClient::connect_to(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path)
    return failed("card.keeper", "the path of the keeper's socket is too long", path.string());
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return failed("card.keeper", fmt::format("cannot make a socket: {}", std::strerror(errno)));
  // If the keeper hangs, its queue of connections is full: connect() then waits as long as a send may.
  const timeval limit{kAnswerTime.count() / 1000, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR) return nullptr;
    return failed(
        errno == EACCES ? "card.permission" : "card.keeper",
        fmt::format("cannot reach the keeper: {}", std::strerror(errno)), path.string(),
        errno == EACCES ? "its socket is for root and one group: `ls -l` shows which, usermod -aG GROUP USER adds you" : "");
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || (peer.uid != 0 && peer.uid != ::geteuid()))
    return failed("card.keeper", fmt::format("the keeper belongs to user {}, neither root nor you", peer.uid),
                  path.string());
  return std::unique_ptr<KeeperClient>(new KeeperClient(std::move(socket)));
}

Result<std::unique_ptr<KeeperClient>> KeeperClient::connect_if_running() {
  // Try root's keeper first: it needs no runtime directory.
  if (std::getenv("RODEO_KEEPER_SOCKET") == nullptr && ::geteuid() != 0) {
    auto client = connect_to(kSharedKeeperSocket);
    if (!client || *client != nullptr) return client;
  }
  const auto own = RODEO_TRY(keeper_socket());
  return connect_to(own);
}

Result<std::unique_ptr<KeeperClient>> KeeperClient::connect() {
  auto client = connect_if_running();
  if (!client || *client != nullptr) return client;
  const auto started = start_keeper();
  // Another process may have started a keeper at the same time, and a keeper that is ending no longer listens.
  for (int attempt = 0; attempt < 50; ++attempt) {
    client = connect_if_running();
    if (!client || *client != nullptr) return client;
    if (!started && started.error().code != "card.held") break;
    std::this_thread::sleep_for(milliseconds{20});
  }
  if (!started) return std::unexpected(started.error());
  return failed("card.keeper", "the keeper has started but does not listen", "", "see keeper.log beside its socket");
}

Result<KeeperClient::Answer> KeeperClient::ask(const KeeperRequest& request, int descriptor) {
  const auto held = RODEO_TRY(mutex_.hold());
  const auto gone = [] {
    return failed("card.gone", "the keeper has ended", "",
                  "the registers stay usable; restart the program to use the card's memory again");
  };
  if (!socket_) return gone();
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  if (!send_packet(socket_.get(), encode(request), descriptors)) {
    socket_.reset();
    return gone();
  }
  auto packet = receive_packet(socket_.get(), request.operation == KeeperOperation::map ? kPinTime : kAnswerTime);
  if (!packet || packet->bytes.empty()) {
    socket_.reset();  // a late answer must not be taken as the answer to another request
    if (!packet) return std::unexpected(packet.error());
    return gone();
  }
  auto reply = RODEO_TRY(decode_reply(packet->bytes, request.operation));
  return Answer{std::move(reply), std::move(packet->descriptors)};
}

Result<LockNode> KeeperClient::lock_node() {
  auto answer = RODEO_TRY(ask({.operation = KeeperOperation::lock}));
  if (answer.descriptors.size() != 1)
    return failed("card.keeper", "the keeper did not hand out the node of the card's locks", "",
                  "use one version of rodeo for the keeper and its clients: `rodeo card keep --stop`");
  return LockNode{std::move(answer.descriptors[0]), answer.reply.value};
}

Result<KeeperClient::Opened> KeeperClient::connect_and_ask(const KeeperRequest& request, bool start) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    auto client = RODEO_TRY(start ? connect() : connect_if_running());
    if (client == nullptr) return Opened{};
    auto answer = client->ask(request);
    if (answer) return Opened{std::move(client), std::move(*answer)};
    if (answer.error().code != "card.gone" || attempt == kAttempts) return std::unexpected(answer.error());
    std::this_thread::sleep_for(milliseconds{20});
  }
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the returned object owns the client
}

Result<void> keep_function(const Address& address, bool keep) {
  const KeeperRequest request{.operation = KeeperOperation::keep, .address = address, .flags = keep ? kKeepFlag : 0};
  RODEO_TRY(KeeperClient::connect_and_ask(request, true));
  return {};
}

Result<std::string> keeper_status() {
  const auto opened = RODEO_TRY(KeeperClient::connect_and_ask({.operation = KeeperOperation::status}, false));
  return opened.client == nullptr ? std::string{} : opened.answer.reply.text();
}

Result<bool> stop_keeper() {
  const auto opened = RODEO_TRY(KeeperClient::connect_and_ask({.operation = KeeperOperation::stop}, false));
  return opened.client != nullptr;
}

}  // namespace rodeo::card::pci
