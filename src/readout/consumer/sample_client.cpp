#include "readout/consumer/sample_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/runtime_dir.h"

namespace rodeo::readout {
namespace {

constexpr std::string_view kEnding = ".events";
constexpr std::size_t kReadBytes = 64 * 1024;

Error no_sampler(std::string what, const std::filesystem::path& where) {
  return Error{
      "readout.no_sampler", std::move(what), where.string(),
      "start `rodeo readout CONFIG` with an event_sampler among its consumers; RODEO_RUNTIME_DIR is the same for both"};
}

}  // namespace

Result<SampleClient> SampleClient::connect(std::string_view readout_name) {
  const std::filesystem::path directory = base::runtime_directory_name();
  if (!readout_name.empty()) return connect_to(directory / (std::string(readout_name) + std::string(kEnding)));
  // Connected to find out who is there: the dead leave their sockets behind.
  std::vector<SampleClient> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != kEnding) continue;
    if (auto client = connect_to(entry.path())) found.push_back(std::move(*client));
  }
  if (found.empty()) return std::unexpected(no_sampler("no running readout offers events", directory));
  if (found.size() == 1) return std::move(found.front());
  std::vector<std::string> names;
  for (const auto& client : found) names.push_back(client.path_.stem().string());
  std::ranges::sort(names);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return std::unexpected(Error{"readout.which_sampler", fmt::format("{} readouts may be meant: {}", names.size(), list),
                               directory.string(), "--name NAME"});
}

Result<SampleClient> SampleClient::connect_to(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) return std::unexpected(no_sampler("the name is too long", socket));
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int reason = errno;
    if (fd >= 0) ::close(fd);
    return std::unexpected(
        no_sampler(fmt::format("no running readout offers events here: {}", std::strerror(reason)), socket));
  }
  return SampleClient(fd, socket);
}

SampleClient::SampleClient(SampleClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), received_(std::move(other.received_)) {}

SampleClient::~SampleClient() {
  if (fd_ >= 0) ::close(fd_);
}

Result<SampleClient::Outcome> SampleClient::next(Sample& sample, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (received_.size() >= kSampleHeaderBytes) {
      const auto header =
          decode_sample_header(std::span<const std::byte, kSampleHeaderBytes>(received_.data(), kSampleHeaderBytes));
      if (!header) {
        return std::unexpected(Error{"readout.sample_protocol", "what comes is no sampled event of version 1",
                                     path_.string(), "use the `rodeo` of the same version as the readout"});
      }
      const std::size_t whole = std::size_t{header->header_bytes} + header->event_bytes;
      if (received_.size() >= whole) {
        sample.header = *header;
        sample.event.assign(received_.begin() + header->header_bytes,
                            received_.begin() + static_cast<std::ptrdiff_t>(whole));
        received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(whole));
        return Outcome::sample;
      }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd polled{.fd = fd_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) return Outcome::nothing;
    const std::size_t before = received_.size();
    received_.resize(before + kReadBytes);
    const ssize_t n = ::recv(fd_, received_.data() + before, kReadBytes, 0);
    received_.resize(before + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n < 0 && errno == EINTR) return Outcome::nothing;
    if (n <= 0) return Outcome::end;
  }
}

}  // namespace rodeo::readout
