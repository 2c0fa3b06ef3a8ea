#include "transport/provider_choice.h"

#include <gtest/gtest.h>

namespace rodeo::transport {
namespace {

using Choice = std::vector<std::string>;

BusEntry publisher() { return {.name = "felix0.0", .host = "felix0", .pid = 100, .providers = {"verbs", "tcp", "shm"}}; }

Here subscriber() { return {.host = "readout0", .pid = 200, .rdma = true, .shared_bytes = kLeastSharedBytes}; }

TEST(ProviderChoice, BetweenHostsIsRdmaWhereBothHaveIt) {
  EXPECT_EQ(provider_choice("auto", publisher(), subscriber()), (Choice{"verbs", "tcp"}));
  Here without = subscriber();
  without.rdma = false;
  EXPECT_EQ(provider_choice("auto", publisher(), without), Choice{"tcp"});
}

TEST(ProviderChoice, WithinAHostIsSharedMemory) {
  Here here = subscriber();
  here.host = "felix0";
  here.rdma = false;
  EXPECT_EQ(provider_choice("auto", publisher(), here), (Choice{"shm", "tcp"}));
  Here small = here;
  small.shared_bytes = 64U << 20;  // of a container
  EXPECT_EQ(provider_choice("auto", publisher(), small), Choice{"tcp"});
  Here same = here;
  same.pid = 100;
  EXPECT_EQ(provider_choice("auto", publisher(), same), Choice{"tcp"}) << "a process does not share with itself";
}

TEST(ProviderChoice, OneByNameIsTaken) { EXPECT_EQ(provider_choice("shm", publisher(), subscriber()), Choice{"shm"}); }

TEST(ProviderChoice, OfWhatIsNotOfferedThereIsNone) {
  BusEntry only = publisher();
  only.providers = {"shm"};
  EXPECT_EQ(provider_choice("auto", only, subscriber()), Choice{});
}

TEST(ProviderChoice, RdmaIsOfferedWhereThereIsADevice) {
  Here here = subscriber();
  EXPECT_EQ(offered_providers(here), (Choice{"verbs", "tcp", "shm"}));
  here.rdma = false;
  EXPECT_EQ(offered_providers(here), (Choice{"tcp", "shm"}));
}

}  // namespace
}  // namespace rodeo::transport
