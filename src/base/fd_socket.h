// Unix stream sockets that carry descriptors, for the protocol between a driver and an emulated card.
#pragma once

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rodeo::base {

/// Owns one file descriptor. Move only; the destructor closes it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// For main(): closed standard streams become /dev/null. Otherwise a file opened later could get the number of such a
/// stream, and messages would be written into that file. stdin and stdout still fail, because input not read or output not
/// printed is an error.
void occupy_standard_streams();

/// A pipe: bytes written to the second end are read from the first. Close-on-exec; neither end is descriptor 0, 1 or 2, even
/// if these are closed. Error base.resources.
Result<std::array<UniqueFd, 2>> make_pipe();

/// True for errors of accept() after which poll() reports the waiting client again at once: without a pause the caller would
/// loop.
bool out_of_descriptors(int error);

/// The result of a transfer.
enum class IoStatus : unsigned char {
  done,     ///< all bytes moved
  partial,  ///< the socket would block, or time-out; some bytes or none moved
  closed,   ///< the peer is gone
  failed,   ///< a system error; errno says which
};

struct IoResult {
  IoStatus status = IoStatus::done;
  std::size_t bytes = 0;  ///< bytes moved, with any status
};

/// Most descriptors that one receive takes. The kernel closes those that it cannot pass; `ReceivedFds` says why.
inline constexpr std::size_t kMaxFdsPerReceive = 32;

struct ReceivedFds {
  std::vector<UniqueFd> fds;
  bool truncated = false;  ///< the peer sent more in one message than one receive takes
  bool no_room = false;    ///< the process or the system had no descriptor number left
};

/// One sendmsg of `bytes` (and, with the first byte, `fds`, which stay the caller's). Never raises SIGPIPE. Blocks if the
/// socket is a blocking one.
IoResult send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {});

/// Waits until the socket is ready for `events` of poll(), or the deadline has passed (false). Use one deadline for all
/// pieces of a transfer: otherwise a peer that sends a byte now and then could delay it without limit.
bool wait_for(int socket, short events, std::chrono::steady_clock::time_point deadline);

/// Sends all bytes, waiting at most `patience` for room; works on blocking and non-blocking sockets.
IoResult send_all(int socket, std::span<const std::byte> bytes, std::span<const int> fds, std::chrono::nanoseconds patience);

/// One recvmsg of at most `into.size()` bytes; descriptors that come with them are appended to `fds` (close-on-exec).
IoResult receive_some(int socket, std::span<std::byte> into, ReceivedFds& fds);

/// receive_some() without waiting, even on a blocking socket: partial with 0 bytes if nothing is there.
IoResult receive_now(int socket, std::span<std::byte> into, ReceivedFds& fds);

/// Receives exactly `into.size()` bytes, waiting at most `patience` for them.
IoResult receive_all(int socket, std::span<std::byte> into, ReceivedFds& fds, std::chrono::nanoseconds patience);

/// A connected socket (blocking, close-on-exec). Waits at most `patience` for the server to accept. Errors base.socket,
/// base.resources.
Result<UniqueFd> connect_unix(const std::filesystem::path& path,
                              std::chrono::milliseconds patience = std::chrono::seconds{5});

/// A listening socket (non-blocking, close-on-exec, mode 0600) of type SOCK_STREAM or SOCK_SEQPACKET. The name must be free.
/// Errors base.runtime_dir, base.resources, base.socket (a path that is too long for a socket).
Result<UniqueFd> listen_unix(const std::filesystem::path& path, int backlog = 64, int type = SOCK_STREAM);

/// True if a process listens on this stream socket, or if that is unknown.
bool has_listener(const std::filesystem::path& path);

}  // namespace rodeo::base
