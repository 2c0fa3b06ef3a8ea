// A vfio-user client for tests: sends any message, right or wrong.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/fd_socket.h"
#include "formats/vfio_user.h"

namespace rodeo::test {

namespace vfio = formats::vfio_user;
using namespace std::chrono_literals;

/// Memory with a descriptor, as a client maps it.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : fd_(::memfd_create("rodeo-test", MFD_CLOEXEC)), bytes_(bytes) {
    EXPECT_EQ(::ftruncate(fd_.get(), static_cast<off_t>(bytes)), 0);
    memory_ = static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0));
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~SharedMemory() { ::munmap(memory_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  int fd() const { return fd_.get(); }
  std::byte* data() const { return memory_; }
  std::size_t size() const { return bytes_; }
  std::span<std::byte> bytes() const { return {memory_, bytes_}; }

 private:
  base::UniqueFd fd_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

struct Reply {
  vfio::Header header;
  std::vector<std::byte> payload;
  base::ReceivedFds fds;
  int error() const { return header.is_error() ? static_cast<int>(header.error) : 0; }
};

class VfioClient {
 public:
  explicit VfioClient(const std::filesystem::path& path, bool negotiate = true) {
    auto socket = base::connect_unix(path);
    EXPECT_TRUE(socket.has_value()) << (socket ? "" : socket.error().message());
    if (socket) socket_ = std::move(*socket);
    if (negotiate) {
      EXPECT_EQ(call(vfio::Version{.capabilities = {.max_msg_fds = 8}}).error(), 0);
    }
  }

  int socket() const { return socket_.get(); }
  void close() { socket_.reset(); }
  bool send(std::span<const std::byte> bytes, std::span<const int> fds = {}) {
    return base::send_all(socket_.get(), bytes, fds, 10s).status == base::IoStatus::done;
  }

  /// nullopt if the server has closed the connection.
  std::optional<Reply> receive(std::chrono::nanoseconds patience = 20s) {
    Reply reply;
    std::array<std::byte, vfio::kHeaderBytes> header;
    if (base::receive_all(socket_.get(), header, reply.fds, patience).status != base::IoStatus::done) return std::nullopt;
    reply.header = vfio::read_header(header);
    reply.payload.resize(reply.header.size - vfio::kHeaderBytes);
    if (base::receive_all(socket_.get(), reply.payload, reply.fds, patience).status != base::IoStatus::done)
      return std::nullopt;
    return reply;
  }

  std::optional<Reply> try_call(const vfio::Request& request, std::span<const int> fds = {}) {
    vfio::MessageWriter writer;
    writer.request(++id_, request);
    if (!send(writer.bytes(), fds)) return std::nullopt;
    auto reply = receive();
    if (reply) {
      EXPECT_EQ(reply->header.id, id_);
      EXPECT_TRUE(reply->header.is_reply());
    }
    return reply;
  }

  Reply call(const vfio::Request& request, std::span<const int> fds = {}) {
    auto reply = try_call(request, fds);
    EXPECT_TRUE(reply.has_value());
    return reply ? std::move(*reply) : Reply{};
  }

  int map(const SharedMemory& memory, std::uint64_t iova, std::optional<std::uint64_t> bytes = std::nullopt,
          std::uint64_t offset = 0) {
    const std::array fds{memory.fd()};
    return call(vfio::DmaMap{.flags = 3, .offset = offset, .address = iova, .size = bytes.value_or(memory.size())}, fds)
        .error();
  }
  int unmap(std::uint64_t iova, std::uint64_t bytes) { return call(vfio::DmaUnmap{.address = iova, .size = bytes}).error(); }

  template <typename T>
  T read(unsigned region, std::uint64_t offset) {
    const Reply reply = call(vfio::RegionRead{{.offset = offset, .region = region, .count = sizeof(T)}});
    EXPECT_EQ(reply.error(), 0);
    T value{};
    const auto data = vfio::decode_region_data(reply.payload);
    EXPECT_TRUE(data && data->size() == sizeof value);
    if (data && data->size() == sizeof value) std::memcpy(&value, data->data(), sizeof value);
    return value;
  }
  std::uint32_t read32(unsigned region, std::uint64_t offset) { return read<std::uint32_t>(region, offset); }

  template <typename T>
  void write(unsigned region, std::uint64_t offset, T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    EXPECT_EQ(call(vfio::RegionWrite{{.offset = offset, .region = region, .count = sizeof(T)}, bytes}).error(), 0);
  }
  void write32(unsigned region, std::uint64_t offset, std::uint32_t value) { write(region, offset, value); }

  void set_bus_master() { write<std::uint16_t>(7, 4, 6); }

 private:
  base::UniqueFd socket_;
  std::uint16_t id_ = 0;
};

}  // namespace rodeo::test
