// A client's connection to the keeper; starts a keeper if none runs.
#pragma once

#include <filesystem>
#include <optional>

#include "card/pci/keeper_protocol.h"
#include "card/pci/owner_process.h"

namespace rodeo::card::pci {

/// One connection; calls from several threads wait for each other. A call takes at most 5 s, or 60 s when it pins memory.
class KeeperClient {
 public:
  /// Connects to root's keeper, else to that of the own user. If none runs, starts `rodeo card keep` (RODEO_KEEPER names
  /// another program) and waits until it is ready. Returns the keeper's own errors unchanged.
  static Result<std::unique_ptr<KeeperClient>> connect();
  /// Connects like connect(); nothing if no keeper runs.
  static Result<std::unique_ptr<KeeperClient>> connect_if_running();

  struct Answer {
    KeeperReply reply;
    std::vector<Descriptor> descriptors;
  };
  /// Connects and sends the first request; tries again if that keeper is ending. `start`: as connect(); else no client if no
  /// keeper runs.
  struct Opened {
    std::unique_ptr<KeeperClient> client;
    Answer answer;
  };
  static Result<Opened> connect_and_ask(const KeeperRequest& request, bool start);
  /// Sends a request and waits for its answer. Error card.gone if the keeper has ended.
  Result<Answer> ask(const KeeperRequest& request, int descriptor = -1);
  /// Function::lock_node() of the connection's function.
  Result<LockNode> lock_node();

 private:
  explicit KeeperClient(Descriptor socket) : socket_(std::move(socket)) {}
  static Result<std::unique_ptr<KeeperClient>> connect_to(const std::filesystem::path& path);

  OwnMutex mutex_{"the keeper"};
  OwnDescriptor socket_;
};

/// `keep`: keeps a function open, with the configuration written to it, after the last program has closed it. Else ends
/// this.
Result<void> keep_function(const Address& address, bool keep);
/// The keeper's state as JSON (docs/reference/protocols/keeper.md); empty if no keeper runs.
Result<std::string> keeper_status();
/// Ends the keeper if one runs; true if one ran. Error card.held while memory is mapped for a card.
Result<bool> stop_keeper();

}  // namespace rodeo::card::pci
