// The common part of both kinds of ports: a domain, its completions, and connections with their registered memory.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <concepts>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fd_socket.h"
#include "transport/fabric.h"

namespace rodeo::transport::fabric {

struct CloseFid {
  template <typename T>
  void operator()(T* object) const {
    (void)fi_close(&object->fid);
  }
};
template <typename T>
using Owned = std::unique_ptr<T, CloseFid>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// "cannot register memory: Cannot allocate memory". `status`: as libfabric returned it, negative.
Error failure(std::string code, const std::string& doing, long status, std::string next = {});

/// An object of libfabric, made by `make(&object)`.
template <typename T>
Result<Owned<T>> made(const std::string& doing, std::invocable<T**> auto make) {
  T* object = nullptr;
  if (const long status = make(&object); status != 0) return std::unexpected(failure("transport.endpoint", doing, status));
  return Owned<T>(object);
}

/// One thread, as for FabricPort.
class LibfabricPort : public FabricPort {
 public:
  Result<Connection> open(std::span<std::byte> memory, std::size_t slot_bytes) override;
  bool send(Connection end, std::uint32_t slot, std::size_t bytes) override;
  bool send(Connection end, std::uint32_t slot, std::span<const std::span<const std::byte>> parts) override;
  std::size_t most_parts() const override;
  bool receive(Connection end, std::uint32_t slot) override;
  std::size_t poll(std::span<Event> events) override;
  void close(Connection end) override;

 protected:
  struct End;
  /// The operation of one slot. libfabric uses the context until the operation completes.
  struct Operation {
    fi_context2 context;  // must be the first member, because a completion points to it
    End* end = nullptr;
    std::uint32_t slot = 0;
    bool sending = false;
    bool arrived = false;  // the page was received before that of an earlier receive
    std::uint32_t bytes = 0;
  };
  /// The completions of some ends.
  struct Queue {
    Owned<fid_cq> completions;
    std::size_t ends = 0;
    std::size_t operations = 0;  // limit of the operations that the ends may have in progress
    bool hot = false;            // the queue is in hot_
  };
  struct End {
    Connection number = 0;
    Queue* queue = nullptr;
    std::span<std::byte> memory;
    std::size_t slot_bytes = 0;
    Owned<fid_mr> region;  // set if the provider wants memory registered
    Owned<fid_av> peers;
    Owned<fid_ep> endpoint;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    std::vector<Operation> operations;
    std::deque<std::uint32_t> posted;  // slots with a receive, in the order of posting
    std::size_t under_way = 0;
    bool connected = false;
    bool settled = false;  // connected, broken or closed
    bool broken = false;
    bool closed = false;

    void* descriptor() const { return region ? fi_mr_desc(region.get()) : nullptr; }
  };

  LibfabricPort(Info info, Owned<fid_fabric> fabric, Owned<fid_domain> domain, PortSize size)
      : info_(std::move(info)), fabric_(std::move(fabric)), domain_(std::move(domain)), size_(size) {}
  ~LibfabricPort() override;

  /// The part of open() that depends on the kind of port.
  virtual Result<void> prepare(End& end) = 0;
  /// Looks for new and ended connections.
  virtual void check_connections() {}

  End& end(Connection number) { return *ends_[number]; }
  void add_event(Event::What what, const End& end) { events_.push_back({what, end.number, 0, 0}); }
  void lost(End& end);
  void mark_settled(End& end);
  Result<void> bind_completions(End& end);

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<End>> ends_;  // indexed by the number; empty: the number is free

 private:
  Result<Queue*> queue_with_room(std::size_t operations);
  void mark_hot(Queue& queue) {
    if (!std::exchange(queue.hot, true)) hot_.push_back(&queue);
  }
  void note_ready_queues();
  bool read(Queue& queue, std::span<Event> events, std::size_t& filled);
  bool begun(End& end, Operation& operation, bool sending, long status);
  void arrived(End& end, Operation& operation, std::size_t bytes);
  void handle_errors(Queue& queue);

  std::vector<std::unique_ptr<End>> closed_;  // each stays until its last operation completes
  std::deque<Event> events_;                  // returned by the next poll()
  const PortSize size_;
  base::UniqueFd ready_;      // for `many`: watches the queues' descriptors
  std::vector<Queue*> hot_;   // queues that may have events; the next poll() reads them
  std::vector<Queue*> read_;  // queues that this poll() reads
  std::uint32_t polls_ = 0;
  std::size_t unsettled_ = 0;  // number of ends that are not connected yet
};

/// For providers whose endpoints connect to each other (tcp, verbs). `listen`: empty if no peer will connect.
Result<std::unique_ptr<FabricPort>> open_msg_port(Info info, Owned<fid_fabric> fabric, Owned<fid_domain> domain,
                                                  PortSize size, bool listens);
/// For providers whose endpoints reach any other without a connection (shm).
Result<std::unique_ptr<FabricPort>> open_rdm_port(Info info, Owned<fid_fabric> fabric, Owned<fid_domain> domain,
                                                  PortSize size);

}  // namespace rodeo::transport::fabric
