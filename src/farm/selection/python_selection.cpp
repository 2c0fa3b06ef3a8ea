#include "farm/selection/python_selection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/clock.h"
#include "farm/selection/register.h"
#include "rodeo/settings.h"

namespace rodeo::farm {

using settings::Json;

namespace {

constexpr std::size_t kFirstMemory = std::size_t{1} << 20;
constexpr std::size_t kMostAnswer = std::size_t{1} << 20;

// The layout that python/rodeo/selection/event.py reads: "<QIIHHHBxIIQ".
class RequestWriter {
 public:
  explicit RequestWriter(std::span<std::byte> to) : to_(to) {}
  template <typename T>
  RequestWriter& add(T value) {
    std::memcpy(to_.data(), &value, sizeof value);
    to_ = to_.subspan(sizeof value);
    return *this;
  }

 private:
  std::span<std::byte> to_;
};

std::vector<SourceId> source_ids(const Json& list) {
  std::vector<SourceId> ids;
  for (const Json& one : list.elements()) {
    const bool possible = one.is_number() && one.number() >= 0 && one.number() <= 0xffffffff;
    if (!possible) throw std::runtime_error("it asks for a ROB number outside 32 bits");
    ids.push_back({static_cast<std::uint32_t>(one.number())});
  }
  return ids;
}

const Json& at(const Json& json, std::string_view key) {
  static const Json nothing;
  const Json* const found = json.find(key);
  return found == nullptr ? nothing : *found;
}

}  // namespace

struct PythonSelection::Keys {
  std::filesystem::path file;
  std::chrono::nanoseconds timeout = std::chrono::seconds{5};
  std::chrono::nanoseconds start_timeout = std::chrono::seconds{60};

  static const Settings<Keys>& settings() {
    static const Settings<Keys> settings{
        setting(&Keys::file, "file", "Python file with one function that is decorated with @rodeo.select.",
                {.required = true}),
        setting(&Keys::timeout, "timeout",
                "If the function has not answered after this time, its process is restarted, and the event goes to a "
                "debug stream."),
        setting(&Keys::start_timeout, "start_timeout", "How long Python may take to read the file."),
    };
    return settings;
  }
};

struct PythonSelection::Counts {
  std::atomic<std::uint64_t> raised{0};
  std::atomic<std::uint64_t> crashed{0};
  std::atomic<std::uint64_t> hung{0};
};

std::vector<Key> PythonSelection::keys() { return Keys::settings().keys(); }

PythonSelection::PythonSelection(const Parameters& parameters)
    : keys_(std::make_unique<Keys>(Keys::settings().read(parameters))), counts_(std::make_unique<Counts>()) {
  memory_ = base::UniqueFd(::memfd_create("rodeo-selection", MFD_CLOEXEC));
  if (!memory_) throw SetupError(Error{"farm.python", fmt::format("no shared memory: {}", std::strerror(errno))});
  if (const auto started = start(); !started) throw SetupError(started.error());
}

PythonSelection::~PythonSelection() {
  stop();
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

Result<void> PythonSelection::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return std::unexpected(Error{"farm.python", fmt::format("no socket: {}", std::strerror(errno))});
  socket_ = base::UniqueFd(ends[0]);
  const base::UniqueFd child_end(ends[1]);
  const base::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> command = python_command();
  command.insert(command.end(), {"rodeo.selection.worker", keys_->file.string(), std::to_string(child_end.get()),
                                 std::to_string(memory_.get())});
  const int inherited[] = {child_end.get(), memory_.get()};
  auto started =
      base::ChildProcess::start({.command = command, .in = nothing.get(), .out = STDERR_FILENO, .first = [inherited] {
                                   return ::fcntl(inherited[0], F_SETFD, 0) == 0 && ::fcntl(inherited[1], F_SETFD, 0) == 0;
                                 }});
  if (!started) return std::unexpected(started.error());
  process_ = std::move(*started);
  received_.clear();
  const auto answer = read_answer(keys_->start_timeout);
  if (!answer || at(*answer, "ready").boolean() == false) {
    const std::string why = answer ? at(*answer, "error").string() : answer.error().what;
    stop();
    return std::unexpected(Error{"farm.python", why, keys_->file.string(), "`rodeo explain rodeo.select` shows an example"});
  }
  first_robs_ = source_ids(at(*answer, "first_robs"));
  return {};
}

void PythonSelection::stop() {
  socket_ = {};  // The process ends when its socket is closed.
  if (process_.pid() > 0 && !process_.wait(std::chrono::milliseconds{200})) process_.signal(SIGKILL);
  process_ = {};
}

Result<Json> PythonSelection::read_answer(std::chrono::nanoseconds patience) {
  const std::uint64_t deadline = base::steady_now_ns() + static_cast<std::uint64_t>(patience.count());
  for (;;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      auto json = Json::parse(std::string_view(received_).substr(0, end));
      received_.erase(0, end + 1);
      return json;
    }
    const std::uint64_t now = base::steady_now_ns();
    if (now >= deadline) return std::unexpected(Error{"farm.python_hung", "it did not answer in time"});
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&readable, 1, static_cast<int>(std::min<std::uint64_t>((deadline - now) / 1'000'000 + 1, 1000)));
    if (ready < 0 && errno != EINTR) return std::unexpected(Error{"farm.python", std::strerror(errno)});
    if (ready <= 0) continue;
    char piece[4096];
    const ssize_t n = ::recv(socket_.get(), piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0 || received_.size() > kMostAnswer) {
      const auto status = process_.wait(std::chrono::milliseconds{1000});
      return std::unexpected(Error{"farm.python", status ? fmt::format("its process ended with status {}", *status)
                                                         : "its process closed its socket, or sent too long an answer"});
    }
    received_.append(piece, static_cast<std::size_t>(n));
  }
}

void PythonSelection::write_event(const WholeEvent& event) {
  constexpr std::size_t kEntry = 24;  // "<IIQQ"
  std::size_t bytes = event.robs.size() * kEntry;
  for (const EventRob& rob : event.robs) bytes += rob.bytes();
  if (bytes > mapped_bytes_) {
    std::size_t wanted = std::max(mapped_bytes_, kFirstMemory);
    while (wanted < bytes) wanted *= 2;
    if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
    mapped_ = nullptr;
    mapped_bytes_ = 0;
    void* memory = MAP_FAILED;
    if (::ftruncate(memory_.get(), static_cast<off_t>(wanted)) == 0)
      memory = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    if (memory == MAP_FAILED) throw std::runtime_error(fmt::format("no shared memory for an event of {} bytes", bytes));
    mapped_ = static_cast<std::byte*>(memory);
    mapped_bytes_ = wanted;
  }
  std::size_t entry = 0;
  std::size_t at = event.robs.size() * kEntry;
  for (const EventRob& rob : event.robs) {
    const std::uint64_t where[] = {at, rob.bytes()};
    const std::uint32_t what[] = {rob.source_id.value, rob.status};
    std::memcpy(mapped_ + entry, what, sizeof what);
    std::memcpy(mapped_ + entry + sizeof what, where, sizeof where);
    entry += kEntry;
    for (const auto part : rob.parts) {
      std::memcpy(mapped_ + at, part.data(), part.size());
      at += part.size();
    }
  }
  RequestWriter(request_)
      .add(event.global_id)
      .add(event.l1id.value)
      .add(event.run_number)
      .add(event.lumi_block)
      .add(event.scan_step)
      .add(event.bcid)
      .add(event.trigger_type)
      .add(std::uint8_t{0})
      .add(event.step)
      .add(static_cast<std::uint32_t>(event.robs.size()))
      .add(static_cast<std::uint64_t>(mapped_bytes_));
}

void PythonSelection::restart(const std::string& why) {
  process_.signal(SIGKILL);
  stop();
  // If this start fails, the next event starts the process.
  (void)start();
  throw std::runtime_error(why);
}

Selected PythonSelection::select(const WholeEvent& event) {
  if (process_.pid() <= 0) {
    if (const auto started = start(); !started)
      throw std::runtime_error("it cannot be started again: " + started.error().what);
  }
  write_event(event);
  if (::send(socket_.get(), request_.data(), request_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request_.size())) {
    counts_->crashed.fetch_add(1, std::memory_order_relaxed);
    restart("its process had ended");
  }
  const auto answer = read_answer(keys_->timeout);
  if (!answer) {
    const bool hung = answer.error().code == "farm.python_hung";
    (hung ? counts_->hung : counts_->crashed).fetch_add(1, std::memory_order_relaxed);
    restart(answer.error().what);
  }
  if (const std::string& error = at(*answer, "error").string(); !error.empty()) {
    counts_->raised.fetch_add(1, std::memory_order_relaxed);
    throw std::runtime_error(error);
  }
  const std::string& verdict = at(*answer, "verdict").string();
  if (verdict == "rejected") return Selected::reject();
  if (verdict == "more") return Selected::more(source_ids(at(*answer, "robs")));
  std::vector<SelectedStream> streams;
  for (const Json& stream : at(*answer, "streams").elements())
    streams.push_back({.type = at(stream, "type").string(),
                       .name = at(stream, "name").string(),
                       .obeys_lumi_block = at(stream, "obeys_lumi_block").boolean()});
  return Selected::accept(std::move(streams));
}

std::vector<NamedCounter> PythonSelection::counters() const {
  return {{"python_raised", counts_->raised.load(std::memory_order_relaxed)},
          {"python_crashed", counts_->crashed.load(std::memory_order_relaxed)},
          {"python_hung", counts_->hung.load(std::memory_order_relaxed)}};
}

}  // namespace rodeo::farm
