// A vfio-user server with a few registers for tests of the client: its answers are correct unless a test replaces them.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "base/fd_socket.h"
#include "card_registers/register_map.h"
#include "formats/vfio_user.h"

namespace rodeo::card::doubles {

/// BAR 0: 4 KiB, mappable; BAR 2: 64 KiB, trapped; both are memory. Serves one client after another until it is destroyed.
class ScriptedServer {
 public:
  static constexpr std::size_t kBar0 = 4096;
  static constexpr std::size_t kBar2 = 65536;
  /// Handles a request before the server; true: the server must not answer it.
  using Hook = std::function<bool(int socket, const formats::vfio_user::Header&, const formats::vfio_user::Request&)>;

  explicit ScriptedServer(const std::filesystem::path& path, card_registers::PciId id, Hook hook = {})
      : hook_(std::move(hook)), bar2(kBar2) {
    bar0_fd_.reset(::memfd_create("bar0", MFD_CLOEXEC));
    (void)!::ftruncate(bar0_fd_.get(), kBar0);
    bar0 = {static_cast<std::byte*>(::mmap(nullptr, kBar0, PROT_READ | PROT_WRITE, MAP_SHARED, bar0_fd_.get(), 0)), kBar0};
    std::memcpy(configuration.data(), &id.vendor, 2);
    std::memcpy(configuration.data() + 2, &id.device, 2);
    auto listening = base::listen_unix(path);
    if (!listening) throw SetupError(listening.error());
    listening_ = std::move(*listening);
    thread_ = std::thread([this] { run(); });
  }
  ~ScriptedServer() {
    stop_ = true;
    thread_.join();
    ::munmap(bar0.data(), bar0.size());
  }

  std::span<std::byte> bar0;
  std::array<std::byte, 256> configuration{};
  std::atomic<int> dma_maps{0};
  std::atomic<int> multi_writes{0};
  std::atomic<int> write_messages{0};
  bool write_multiple = true;

 private:
  void run() {
    while (!stop_) {
      base::UniqueFd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) {
        ::usleep(200);
        continue;
      }
      while (!stop_ && serve(client.get())) {
      }
    }
  }

  bool serve(int socket) {
    namespace wire = formats::vfio_user;
    std::array<std::byte, wire::kHeaderBytes> head;
    base::ReceivedFds fds;
    for (;;) {
      const auto got = base::receive_all(socket, head, fds, std::chrono::milliseconds(20));
      if (got.status == base::IoStatus::done) break;
      if (stop_ || got.status != base::IoStatus::partial || got.bytes > 0) return false;
    }
    const wire::Header header = wire::read_header(head);
    payload_.resize(header.size - wire::kHeaderBytes);
    if (!payload_.empty() &&
        base::receive_all(socket, payload_, fds, std::chrono::seconds(1)).status != base::IoStatus::done)
      return false;
    const auto request = wire::decode_request(header, payload_);
    wire::MessageWriter out;
    if (!request) {
      out.error(header, request.error());
      base::send_all(socket, out.bytes(), {}, std::chrono::seconds(1));
      return true;
    }
    if (hook_ && hook_(socket, header, *request)) return true;
    std::vector<int> send_fds;
    std::visit([&](const auto& message) { answer(out, header, message, send_fds, fds); }, *request);
    if (header.wants_no_reply()) return true;
    return base::send_all(socket, out.bytes(), send_fds, std::chrono::seconds(1)).status == base::IoStatus::done;
  }

  std::span<std::byte> memory(unsigned region) {
    if (region == 0) return bar0;
    if (region == 2) return bar2;
    if (region == 7) return configuration;
    return {};
  }

  using Writer = formats::vfio_user::MessageWriter;
  using Header = formats::vfio_user::Header;
  void answer(Writer& out, const Header& header, const formats::vfio_user::Version&, std::vector<int>&, base::ReceivedFds&) {
    formats::vfio_user::Version version;
    version.capabilities.write_multiple = write_multiple;
    out.reply(header, version);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::DeviceInfo& info, std::vector<int>&,
              base::ReceivedFds&) {
    auto reply = info;
    reply.regions = 9;
    reply.irqs = 5;
    out.reply(header, reply);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::RegionInfo& info, std::vector<int>& send_fds,
              base::ReceivedFds&) {
    auto reply = info;
    reply.size = memory(info.index).size();
    reply.flags = reply.size > 0 ? 3 : 0;
    if (info.index == 0) {
      reply.flags |= formats::vfio_user::RegionInfo::kMmap;
      send_fds.push_back(bar0_fd_.get());
    }
    out.reply(header, reply, {}, info.argsz);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::IrqInfo& info, std::vector<int>&,
              base::ReceivedFds&) {
    auto reply = info;
    reply.count = info.index == 1 ? 8 : 0;
    reply.flags = info.index == 1 ? formats::vfio_user::IrqInfo::kEventfd : 0;
    out.reply(header, reply);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::SetIrqs&, std::vector<int>&,
              base::ReceivedFds& fds) {
    const std::uint64_t one = 1;
    for (const auto& fd : fds.fds) (void)!::write(fd.get(), &one, sizeof one);
    out.reply(header);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::RegionRead& read, std::vector<int>&,
              base::ReceivedFds&) {
    const auto data = out.reply_read(header, read);
    std::memcpy(data.data(), memory(read.region).data() + read.offset, data.size());
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::RegionWrite& write, std::vector<int>&,
              base::ReceivedFds&) {
    std::memcpy(memory(write.region).data() + write.offset, write.data.data(), write.data.size());
    ++write_messages;
    out.reply(header, write);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::WriteMulti& writes, std::vector<int>&,
              base::ReceivedFds&) {
    for (std::size_t i = 0; i < writes.size(); ++i) {
      const auto write = writes[i];
      std::memcpy(memory(write.region).data() + write.offset, &write.value, write.count);
    }
    ++multi_writes;
    out.reply_write_multi(header, writes.size());
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::DmaMap&, std::vector<int>&,
              base::ReceivedFds& fds) {
    if (fds.fds.size() == 1) ++dma_maps;
    out.reply(header);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::DmaUnmap& unmap, std::vector<int>&,
              base::ReceivedFds&) {
    if (dma_maps == 0) return out.error(header, ENOENT);
    --dma_maps;
    out.reply(header, unmap);
  }
  void answer(Writer& out, const Header& header, const formats::vfio_user::DeviceReset&, std::vector<int>&,
              base::ReceivedFds&) {
    std::ranges::fill(bar2, std::byte{0});
    out.reply(header);
  }
  template <typename Other>
  void answer(Writer& out, const Header& header, const Other&, std::vector<int>&, base::ReceivedFds&) {
    out.error(header, ENOTSUP);
  }

  Hook hook_;
  base::UniqueFd listening_;
  base::UniqueFd bar0_fd_;
  std::vector<std::byte> payload_;
  std::atomic<bool> stop_{false};
  std::thread thread_;

 public:
  std::vector<std::byte> bar2;
};

}  // namespace rodeo::card::doubles
