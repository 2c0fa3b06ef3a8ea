// Endpoints that reach any other by its address: memory shared by processes of one host.
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "transport/fabric/libfabric_port.h"

namespace rodeo::transport::fabric {
namespace {

/// Reads PID from libfabric's name of shared memory, PID:DOMAIN:ENDPOINT. Returns 0 for any other name.
pid_t owner_of(const std::string& name) {
  pid_t pid = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const std::size_t colon = name.find(':');
  const bool named = error == std::errc() && colon != std::string::npos && rest == name.data() + colon && pid > 0 &&
                     name.find_first_not_of("0123456789:") == std::string::npos;
  return named ? pid : 0;
}

/// Removes the 16 MiB of shared memory that each killed process left behind.
void remove_leftovers() {
  std::error_code failure;
  for (std::filesystem::directory_iterator file("/dev/shm", failure), end; !failure && file != end;
       file.increment(failure)) {
    struct stat status{};
    const std::filesystem::path& path = file->path();
    const pid_t owner = owner_of(path.filename().string());
    if (owner == 0 || ::lstat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    if (::kill(owner, 0) != 0 && errno == ESRCH) ::unlink(path.c_str());
  }
}

class RdmPort final : public LibfabricPort {
 public:
  RdmPort(Info info, Owned<fid_fabric> fabric, Owned<fid_domain> domain, PortSize size)
      : LibfabricPort(std::move(info), std::move(fabric), std::move(domain), size) {}
  ~RdmPort() override { ends_.clear(); }

  FabricAddress address(Connection number) const override {
    FabricAddress name(256);
    std::size_t bytes = name.size();
    if (fi_getname(&ends_[number]->endpoint->fid, name.data(), &bytes) != 0) bytes = 0;
    name.resize(bytes);
    return name;
  }
  FabricAddress listens_at() const override { return {}; }

  Result<void> accept(Connection number, const FabricToken& /*token*/, const FabricAddress& peer) override {
    RODEO_TRY(reach(end(number), peer));
    end(number).connected = true;
    mark_settled(end(number));
    add_event(Event::What::connected, end(number));
    return {};
  }

  // A publisher receives no pages, so it needs no address here.
  Result<void> connect(Connection number, const FabricAddress& publisher, const FabricToken& /*token*/) override {
    End& of = end(number);
    if (!publisher.empty()) RODEO_TRY(reach(of, publisher));
    of.connected = true;
    mark_settled(of);
    add_event(Event::What::connected, of);
    return {};
  }

 private:
  static Result<void> reach(End& of, FabricAddress peer) {
    peer.push_back(std::byte{0});  // the provider reads a C string from it
    if (fi_av_insert(of.peers.get(), peer.data(), 1, &of.peer, 0, nullptr) != 1)
      return std::unexpected(Error{"transport.endpoint", "cannot reach the other side's shared memory"});
    return {};
  }

  Result<void> prepare(End& end) override {
    end.endpoint = RODEO_TRY(made<fid_ep>(
        "open an endpoint", [&](fid_ep** object) { return fi_endpoint(domain_.get(), info_.get(), object, &end); }));
    end.peers = RODEO_TRY(made<fid_av>("open an address table", [&](fid_av** object) {
      fi_av_attr attributes{};
      attributes.type = FI_AV_TABLE;
      attributes.count = 4;
      return fi_av_open(domain_.get(), &attributes, object, nullptr);
    }));
    if (const int status = fi_ep_bind(end.endpoint.get(), &end.peers->fid, 0); status != 0)
      return std::unexpected(failure("transport.endpoint", "bind an endpoint", status));
    RODEO_TRY(bind_completions(end));
    if (const int status = fi_enable(end.endpoint.get()); status != 0)
      return std::unexpected(failure("transport.endpoint", "enable an endpoint", status));
    return {};
  }
};

}  // namespace

Result<std::unique_ptr<FabricPort>> open_rdm_port(Info info, Owned<fid_fabric> fabric, Owned<fid_domain> domain,
                                                  PortSize size) {
  remove_leftovers();
  return std::make_unique<RdmPort>(std::move(info), std::move(fabric), std::move(domain), size);
}

}  // namespace rodeo::transport::fabric
