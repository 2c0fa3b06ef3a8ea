#include "card/pci/vfio_user_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/thread.h"

namespace rodeo::card::pci {
namespace {

namespace wire = formats::vfio_user;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReceiveBytes = 16384;                         // the answers of a batch in one system call
constexpr std::size_t kMaxAnswerBytes = wire::max_message_bytes(0);  // the longest answer to the driver is a version text
constexpr std::chrono::milliseconds kJustSent{1};
wire::RegionAccess access_of(const RegionOperation& operation) {
  return {.offset = operation.offset, .region = operation.region, .count = operation.bytes};
}

constexpr const char* kNext = "see whether the emulator still runs, and start it again";

}  // namespace

VfioUserConnection::VfioUserConnection(base::UniqueFd socket, std::string name, const VfioUserSettings& settings)
    : socket_(std::move(socket)), name_(std::move(name)), settings_(settings), in_(kReceiveBytes) {
  // With this limit one receive call can wait, in place of poll() and recv().
  const timeval limit{settings.patience.count() / 1000, settings.patience.count() % 1000 * 1000};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

std::unexpected<Error> VfioUserConnection::broken(std::string code, std::string what, const char* next) {
  socket_.reset();
  broken_ = Error{std::move(code), std::move(what), name_, next == nullptr ? kNext : next};
  return std::unexpected(broken_);
}

Result<void> VfioUserConnection::send(std::span<const std::byte> bytes, std::span<const int> fds) {
  const Deadline began = Clock::now();
  base::IoStatus status = base::IoStatus::partial;
  for (std::size_t done = 0; status == base::IoStatus::partial;) {
    // Send in short waits, because hurry() may be called at any time.
    const base::IoResult sent = base::send_all(socket_.get(), bytes.subspan(done), done == 0 ? fds : std::span<const int>{},
                                               std::min(settings_.patience, limit()));
    done += sent.bytes;
    status = sent.status;
    if (status == base::IoStatus::partial && too_long(began))
      return broken("card.timeout", fmt::format("the card took no messages for {} ms", limit().count()));
  }
  if (status == base::IoStatus::done) return {};
  if (status == base::IoStatus::closed) return broken("card.gone", "the card's process is gone");
  return broken("card.gone", fmt::format("cannot send to the card: {}", std::strerror(errno)));
}

Result<void> VfioUserConnection::fill(std::size_t bytes, Deadline deadline, base::ReceivedFds& fds) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ + bytes > in_.size()) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (bytes > in_.size()) in_.resize(bytes);
  }
  const auto began = Clock::now();
  const auto spin_until = std::min(began + settings_.spin, deadline);
  while (end_ - begin_ < bytes) {
    const std::span<std::byte> room(in_.data() + end_, in_.size() - end_);
    const auto now = Clock::now();
    const bool spinning = now < spin_until;
    if (now >= deadline || (opened_ && now - began >= limit()))
      return broken("card.timeout", "the card did not answer in time");
    // The receive itself waits if the deadline is far enough; else it could wait too long.
    const bool sleeps = !spinning && deadline - now > std::max(settings_.patience - kJustSent, kJustSent);
    if (!spinning && !sleeps && !base::wait_for(socket_.get(), POLLIN, deadline))
      return broken("card.timeout", "the card did not answer in time");
    const base::IoResult got =
        sleeps ? base::receive_some(socket_.get(), room, fds) : base::receive_now(socket_.get(), room, fds);
    end_ += got.bytes;
    switch (got.status) {
      case base::IoStatus::closed: return broken("card.gone", "the card's process hung up");
      case base::IoStatus::failed:
        return broken("card.gone", fmt::format("cannot receive from the card: {}", std::strerror(errno)));
      case base::IoStatus::done:
      case base::IoStatus::partial: break;
    }
    if (fds.no_room)
      return broken("base.resources",
                    fmt::format("cannot take the descriptors that the card sent: {}", std::strerror(EMFILE)),
                    "raise the limit (ulimit -n), or close other files");
    if (fds.truncated) return broken("card.protocol", "the card sent more descriptors than a message may carry");
    if (spinning && got.bytes == 0) base::cpu_relax();
  }
  return {};
}

Result<wire::Header> VfioUserConnection::receive(Deadline deadline, std::vector<base::UniqueFd>& fds) {
  base::ReceivedFds received;
  RODEO_TRY(fill(wire::kHeaderBytes, deadline, received));
  const wire::Header header = wire::read_header(std::span(in_).subspan(begin_, wire::kHeaderBytes));
  if (header.size < wire::kHeaderBytes || header.size > kMaxAnswerBytes)
    return broken("card.protocol", fmt::format("the card sent a message of {} bytes", header.size));
  RODEO_TRY(fill(header.size, deadline, received));
  fds = std::move(received.fds);
  return header;
}

Result<VfioUserConnection::Answer> VfioUserConnection::ask(const wire::Request& request, Deadline deadline,
                                                           std::span<const int> fds) {
  if (!socket_) return broken_error();
  const std::uint16_t id = next_id_++;
  out_.clear();
  out_.request(id, request);
  const std::uint16_t command = wire::read_header(out_.bytes()).command;
  RODEO_TRY(send(out_.bytes(), fds));
  return receive_answer(id, command, deadline);
}

Result<VfioUserConnection::Answer> VfioUserConnection::receive_answer(std::uint16_t id, std::uint16_t command,
                                                                      Deadline deadline) {
  for (;;) {
    Answer answer;
    const auto header = RODEO_TRY(receive(deadline, answer.fds));
    answer.payload = std::span(in_).subspan(begin_ + wire::kHeaderBytes, header.size - wire::kHeaderBytes);
    begin_ += header.size;
    if (header.is_command()) {
      // The server asks to read or write memory of which it has the descriptor: refuse.
      if (header.wants_no_reply()) continue;
      out_.clear();
      out_.error(header, ENOTSUP);
      RODEO_TRY(send(out_.bytes(), {}));
      continue;
    }
    if (!header.is_reply() || header.id != id || header.command != command)
      return broken("card.protocol", fmt::format("the card answered {} {} to {} {}", wire::command_name(header.command),
                                                 header.id, wire::command_name(command), id));
    if (header.is_error()) {
      return std::unexpected(Error{
          "card.refused",
          fmt::format("the card refused {}: {}", wire::command_name(command), std::strerror(static_cast<int>(header.error))),
          name_});
    }
    return answer;
  }
}

Result<void> VfioUserConnection::negotiate(Deadline deadline) {
  wire::Version offer;
  offer.capabilities.max_msg_fds = 8;
  offer.capabilities.write_multiple = true;
  const auto answer = ask(offer, deadline);
  if (!answer) {
    Error error = answer.error();
    if (error.code == "card.refused") error.next = "it may have reached its limit of clients: end some of them";
    return std::unexpected(std::move(error));
  }
  const auto version = wire::decode_version(answer->payload);
  if (!version) return broken("card.protocol", "the card's version cannot be read");
  if (version->major != wire::kMajor)
    return broken("card.protocol",
                  fmt::format("the card speaks vfio-user {}.{}, not {}.x", version->major, version->minor, wire::kMajor));
  server_ = version->capabilities;
  return {};
}

Result<void> VfioUserConnection::exchange(std::span<RegionOperation> operations) {
  if (!socket_) return broken_error();
  // This number of answers fits into the sockets' buffers, so that neither side blocks the other.
  constexpr std::size_t kMostReads = 256;
  // At least one: a server that takes none must not make this loop endless.
  const std::size_t most_writes =
      std::clamp<std::size_t>(server_.max_data_xfer_size / wire::SmallWrite::kBytes, 1, kMostReads);
  while (!operations.empty()) {
    out_.clear();
    read_ids_.clear();
    std::size_t count = 0;
    std::size_t reads = 0;
    while (count < operations.size() && reads < kMostReads && count < 4 * kMostReads) {
      if (!operations[count].write) {
        read_ids_.push_back(next_id_);
        out_.request(next_id_++, wire::RegionRead{access_of(operations[count])});
        ++reads;
        ++count;
        continue;
      }
      writes_.clear();
      for (; count < operations.size() && operations[count].write && writes_.size() < most_writes; ++count) {
        const RegionOperation& one = operations[count];
        writes_.push_back({access_of(one), one.value});
        if (server_.write_multiple) continue;
        const auto data = std::as_bytes(std::span(&one.value, 1)).first(one.bytes);
        out_.request(next_id_++, wire::RegionWrite{access_of(one), data}, wire::Header::kNoReply);
      }
      if (server_.write_multiple) out_.write_multi(next_id_++, writes_, wire::Header::kNoReply);
    }
    const Deadline deadline = from_now();
    RODEO_TRY(send(out_.bytes(), {}));
    std::size_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
      RegionOperation& operation = operations[i];
      if (operation.write) continue;
      const auto answer =
          receive_answer(read_ids_[next++], static_cast<std::uint16_t>(wire::Command::region_read), deadline);
      if (!answer) return broken(answer.error().code, answer.error().what);
      const auto data = wire::decode_region_data(answer->payload);
      if (!data || data->size() != operation.bytes)
        return broken("card.protocol", "the card answered a read with another number of bytes");
      operation.value = 0;
      std::memcpy(&operation.value, data->data(), data->size());
    }
    operations = operations.subspan(count);
  }
  return {};
}

}  // namespace rodeo::card::pci
