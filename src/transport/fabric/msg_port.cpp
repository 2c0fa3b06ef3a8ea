// Endpoints that connect to each other. The publisher has one endpoint that listens. A token names the end to which a new
// connection belongs.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "transport/fabric/libfabric_port.h"

namespace rodeo::transport::fabric {
namespace {

sa_family_t family_of(const FabricAddress& address) {
  sa_family_t family = AF_UNSPEC;
  if (address.size() >= offsetof(sockaddr, sa_family) + sizeof family)
    std::memcpy(&family, address.data() + offsetof(sockaddr, sa_family), sizeof family);
  return family;
}

/// The address comes from the peer, and libfabric does not check it.
bool is_socket_address(const FabricAddress& address) {
  const sa_family_t family = family_of(address);
  return (family == AF_INET && address.size() == sizeof(sockaddr_in)) ||
         (family == AF_INET6 && address.size() == sizeof(sockaddr_in6));
}

class MsgPort final : public LibfabricPort {
 public:
  static Result<std::unique_ptr<FabricPort>> open_port(Info info, Owned<fid_fabric> fabric, Owned<fid_domain> domain,
                                                       PortSize size, bool listens) {
    auto port = std::unique_ptr<MsgPort>(new MsgPort(std::move(info), std::move(fabric), std::move(domain), size));
    port->connections_ = RODEO_TRY(made<fid_eq>("open an event queue", [&](fid_eq** object) {
      fi_eq_attr attributes{};
      attributes.wait_obj = FI_WAIT_NONE;
      return fi_eq_open(port->fabric_.get(), &attributes, object, nullptr);
    }));
    if (listens) RODEO_TRY(port->listen());
    return port;
  }

  ~MsgPort() override {
    ends_.clear();  // the ends must go before their queue
  }

  FabricAddress address(Connection /*end*/) const override { return {}; }
  FabricAddress listens_at() const override { return address_; }

  Result<void> accept(Connection number, const FabricToken& token, const FabricAddress& /*peer*/) override {
    expected_.push_back({token, number});
    return {};
  }

  Result<void> connect(Connection number, const FabricAddress& publisher, const FabricToken& token) override {
    if (!is_socket_address(publisher))
      return std::unexpected(Error{"transport.protocol", "the other side sent an address that cannot be used"});
    Info to(fi_dupinfo(info_.get()));
    to->addr_format = family_of(publisher) == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    if (to->addr_format != info_->addr_format) {  // our own address is of the other family
      std::free(std::exchange(to->src_addr, nullptr));
      to->src_addrlen = 0;
    }
    std::free(to->dest_addr);
    to->dest_addr = std::malloc(publisher.size());
    to->dest_addrlen = publisher.size();
    std::memcpy(to->dest_addr, publisher.data(), publisher.size());
    RODEO_TRY(open_endpoint(end(number), to.get()));
    const int status = fi_connect(end(number).endpoint.get(), publisher.data(), token.data(), token.size());
    if (status != 0) return std::unexpected(failure("transport.endpoint", "connect to a publisher", status));
    return {};
  }

  void close(Connection number) override {
    std::erase_if(expected_, [&](const Expected& one) { return one.number == number; });
    LibfabricPort::close(number);
  }

 private:
  struct Expected {
    FabricToken token;
    Connection number;
  };

  using LibfabricPort::LibfabricPort;

  Result<void> prepare(End& /*end*/) override { return {}; }

  Result<void> listen() {
    listener_ = RODEO_TRY(made<fid_pep>("open a listening endpoint", [&](fid_pep** object) {
      return fi_passive_ep(fabric_.get(), info_.get(), object, nullptr);
    }));
    int status = fi_pep_bind(listener_.get(), &connections_->fid, 0);
    if (status == 0) status = fi_listen(listener_.get());
    address_.resize(256);
    std::size_t bytes = address_.size();
    if (status == 0) status = fi_getname(&listener_->fid, address_.data(), &bytes);
    if (status != 0) return std::unexpected(failure("transport.endpoint", "listen for subscribers", status));
    address_.resize(bytes);
    return {};
  }

  Result<void> open_endpoint(End& end, fi_info* info) {
    end.endpoint = RODEO_TRY(
        made<fid_ep>("open an endpoint", [&](fid_ep** object) { return fi_endpoint(domain_.get(), info, object, &end); }));
    if (const int status = fi_ep_bind(end.endpoint.get(), &connections_->fid, 0); status != 0)
      return std::unexpected(failure("transport.endpoint", "bind an endpoint", status));
    RODEO_TRY(bind_completions(end));
    if (const int status = fi_enable(end.endpoint.get()); status != 0)
      return std::unexpected(failure("transport.endpoint", "enable an endpoint", status));
    return {};
  }

  void check_connections() override {
    std::array<std::byte, sizeof(fi_eq_cm_entry) + 256> memory;
    for (;;) {
      std::uint32_t what = 0;
      auto* entry = reinterpret_cast<fi_eq_cm_entry*>(memory.data());
      const ssize_t bytes = fi_eq_read(connections_.get(), &what, entry, memory.size(), 0);
      if (bytes == -FI_EAVAIL) {
        fi_eq_err_entry error{};
        if (fi_eq_readerr(connections_.get(), &error, 0) > 0 && error.fid != nullptr) lost_with(error.fid);
        continue;
      }
      if (bytes < 0) return;
      if (what == FI_CONNREQ) {
        requested(Info(entry->info), {entry->data, static_cast<std::size_t>(bytes) - sizeof *entry});
      } else if (what == FI_CONNECTED) {
        for (const auto& end : ends_) {
          if (!end || end->endpoint == nullptr || &end->endpoint->fid != entry->fid) continue;
          end->connected = true;
          mark_settled(*end);
          add_event(Event::What::connected, *end);
        }
      } else if (what == FI_SHUTDOWN) {
        lost_with(entry->fid);
      }
    }
  }

  void lost_with(fid_t endpoint) {
    for (const auto& end : ends_) {
      if (end && end->endpoint != nullptr && &end->endpoint->fid == endpoint) lost(*end);
    }
  }

  // Handles a peer that connects. Rejects the peer unless it presents the token of an expected end.
  void requested(Info info, std::span<const std::uint8_t> data) {
    const auto known = std::ranges::find_if(expected_, [&](const Expected& one) {
      return data.size() >= one.token.size() && std::memcmp(data.data(), one.token.data(), one.token.size()) == 0;
    });
    if (known == expected_.end()) {
      (void)fi_reject(listener_.get(), info->handle, nullptr, 0);
      return;
    }
    End& of = end(known->number);
    expected_.erase(known);
    if (!open_endpoint(of, info.get()) || fi_accept(of.endpoint.get(), nullptr, 0) != 0) lost(of);
  }

  Owned<fid_eq> connections_;
  Owned<fid_pep> listener_;
  FabricAddress address_;
  std::vector<Expected> expected_;
};

}  // namespace

Result<std::unique_ptr<FabricPort>> open_msg_port(Info info, Owned<fid_fabric> fabric, Owned<fid_domain> domain,
                                                  PortSize size, bool listens) {
  return MsgPort::open_port(std::move(info), std::move(fabric), std::move(domain), size, listens);
}

}  // namespace rodeo::transport::fabric
