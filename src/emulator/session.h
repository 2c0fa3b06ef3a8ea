// One client's vfio-user session: bytes and descriptors in, replies out (docs/reference/protocols/vfio-user.md). It has no
// socket, so that a fuzzer can send anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/fd_socket.h"
#include "emulator/device.h"
#include "emulator/dma_maps.h"
#include "emulator/interrupts.h"
#include "formats/vfio_user.h"

namespace rodeo::emulator {

enum class ServerCounter : std::uint8_t { requests, errors, hung_up, count };
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(ServerCounter::count)> kServerCounters{{
    {"requests", "messages", "Requests of clients, answered or not."},
    {"request_errors", "messages", "Requests that were answered with an error."},
    {"clients_cut_off", "clients", "Connections that the server ended: broken messages, or replies that were not taken."},
}};

/// For one thread. The destructor releases what the client lent: maps and interrupt descriptors.
class VfioUserSession {
 public:
  /// `one_too_many`: the client gets a refusal in place of a version, and nothing else.
  VfioUserSession(ClientId id, Device& device, DmaMaps& maps, Interrupts& interrupts, bool one_too_many = false);
  ~VfioUserSession();
  VfioUserSession(const VfioUserSession&) = delete;
  VfioUserSession& operator=(const VfioUserSession&) = delete;

  /// Room for the next bytes from the client; never empty. Call again after each received().
  std::span<std::byte> room();
  /// Takes the result of one recvmsg: `bytes` in room(), and `fds`, which are moved out. The kernel ends a read after bytes
  /// that were sent with descriptors, and clients send one message at a time. So the descriptors belong to the last message
  /// that begins in this read, or to the last one that takes descriptors, if there is one.
  void received(std::size_t bytes, base::ReceivedFds& fds);
  /// Handles the next complete message; false if there is none, or over().
  bool handle_message();
  /// True if the connection must end once its replies are sent.
  bool over() const { return over_; }
  void end() { over_ = true; }

  std::size_t reply_bytes() const { return out_.bytes().size(); }
  /// Calls `send(bytes, descriptors)` for the replies, piece by piece, until it returns false; then drops all replies, sent
  /// or not. Descriptors are sent with the first byte of their piece, which begins with their message; the device keeps
  /// them. Returns true if all replies were sent.
  template <typename Send>
  bool send_replies(Send&& send);

  /// Any thread.
  std::uint64_t read(ServerCounter counter) const { return counters_.read(counter); }
  /// Ends the connection for a reason of the server.
  void cut_off();

 private:
  struct Passenger {
    std::size_t at;  // position of the descriptor's message in out_
    int fd;
  };
  struct Arrival {
    std::uint64_t at;  // position of the descriptor's message in the stream
    std::vector<base::UniqueFd> fds;
  };

  std::uint64_t message_of_read(std::size_t first) const;
  void collect_fds(std::uint64_t at);
  void handle(const formats::vfio_user::Header& header, std::span<const std::byte> payload);
  void answer(const formats::vfio_user::Header& header, const formats::vfio_user::Request& request);
  void refuse(const formats::vfio_user::Header& header, int error);
  void negotiate(const formats::vfio_user::Header& header, const formats::vfio_user::Version& version);
  void region_info(const formats::vfio_user::Header& header, const formats::vfio_user::RegionInfo& asked);
  int set_irqs(const formats::vfio_user::SetIrqs& irqs);
  bool valid(const formats::vfio_user::RegionAccess& access) const;
  void region_write(const formats::vfio_user::RegionAccess& access, std::span<const std::byte> data);

  const ClientId id_;
  Device& device_;
  DmaMaps& maps_;
  Interrupts& interrupts_;
  const bool one_too_many_;
  bool negotiated_ = false;
  bool over_ = false;

  std::vector<std::byte> in_;  // received bytes that are not yet handled: in_[begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t stream_ = 0;  // bytes of the stream before in_[0]
  std::vector<Arrival> arrivals_;
  std::vector<base::UniqueFd> fds_;  // descriptors of the message being handled

  formats::vfio_user::MessageWriter out_;
  std::vector<Passenger> passengers_;
  base::CounterBlock<ServerCounter> counters_;
};

template <typename Send>
bool VfioUserSession::send_replies(Send&& send) {
  const auto all = out_.bytes();
  bool sent = true;
  std::size_t at = 0;
  for (std::size_t next = 0; sent && at < all.size();) {
    // Bytes before a message with a descriptor are sent alone.
    const bool aboard = next < passengers_.size() && passengers_[next].at == at;
    const std::span<const int> fds = aboard ? std::span(&passengers_[next].fd, 1) : std::span<const int>{};
    if (aboard) ++next;
    const std::size_t end = next < passengers_.size() ? passengers_[next].at : all.size();
    sent = send(all.subspan(at, end - at), fds);
    at = end;
  }
  out_.clear();
  passengers_.clear();
  return sent;
}

}  // namespace rodeo::emulator
