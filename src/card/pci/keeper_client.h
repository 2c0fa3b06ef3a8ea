// A client's connection to the keeper; starts the keeper where none runs.
#pragma once

#include <filesystem>
#include <optional>

#include "card/pci/keeper_protocol.h"
#include "card/pci/owner_process.h"

namespace rodeo::card::pci {

/// One connection; calls from several threads wait for each other. Each is bounded: 5 s, and 60 s where memory is pinned.
class KeeperClient {
 public:
  /// Root's keeper, else one's own user's; if there is none, starts `rodeo card keep` (RODEO_KEEPER names another program) and waits until it
  /// is ready. The keeper's own reasons come back as they are.
  static Result<std::unique_ptr<KeeperClient>> connect();
  /// As connect(), but nothing if no keeper runs.
  static Result<std::unique_ptr<KeeperClient>> connect_if_running();

  struct Answer {
    KeeperReply reply;
    std::vector<Descriptor> descriptors;
  };
  /// Connects and asks the first question; again if that keeper was just ending. `start`: as connect(); else no client if no keeper runs.
  struct Opened {
    std::unique_ptr<KeeperClient> client;
    Answer answer;
  };
  static Result<Opened> connect_and_ask(const KeeperRequest& request, bool start);
  /// card.gone if the keeper has ended.
  Result<Answer> ask(const KeeperRequest& request, int descriptor = -1);
  /// Function::lock_node() of the connection's function.
  Result<LockNode> lock_node();

 private:
  explicit KeeperClient(Descriptor socket) : socket_(std::move(socket)) {}
  static Result<std::unique_ptr<KeeperClient>> connect_to(const std::filesystem::path& path);

  OwnMutex mutex_{"the keeper"};
  OwnDescriptor socket_;
};

/// Keeps a function open (and with it the configuration that was written to it) when no program uses it any more, or lets it go.
Result<void> keep_function(const Address& address, bool keep);
/// The keeper's state as JSON (docs/protocols/keeper.md); empty if no keeper runs.
Result<std::string> keeper_status();
/// Ends the keeper if one runs; true if one did. card.held while memory is mapped for a card.
Result<bool> stop_keeper();

}  // namespace rodeo::card::pci
