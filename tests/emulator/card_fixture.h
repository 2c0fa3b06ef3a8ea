// An emulator with cards in a separate directory.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "base/named_counters.h"
#include "emulator/emulator.h"
#include "emulator/vfio_client.h"

namespace rodeo::test {

using base::counter_value;

class CardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "rodeo-emu-XXXXXX").native();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    emulator_.reset();
    std::filesystem::remove_all(directory_);
  }

  emulator::EmulatedCardSettings felix() const {
    emulator::EmulatedCardSettings card;
    card.name = "felix";
    card.address = "3b:00.0";
    card.felix.links = 2;
    card.felix.elinks_per_link = 3;
    card.flush = 1ms;
    return card;
  }

  emulator::EmulatorSettings settings(emulator::EmulatedCardSettings card) const {
    emulator::EmulatorSettings all;
    all.directory = directory_;
    all.cards.push_back(std::move(card));
    all.trigger.wait_for = 0;
    return all;
  }

  void start(emulator::EmulatorSettings settings) { emulator_ = std::make_unique<emulator::Emulator>(std::move(settings)); }

  std::filesystem::path socket(const std::string& address = "0000:3b:00.0") const {
    return directory_ / (address + ".sock");
  }

  template <typename Condition>
  static bool wait_until(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(200us);
    }
    return true;
  }

  std::filesystem::path directory_;
  std::unique_ptr<emulator::Emulator> emulator_;
};

}  // namespace rodeo::test
