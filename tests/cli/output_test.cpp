#include "cli/output.h"

#include <gtest/gtest.h>

using namespace rodeo::cli;

namespace {

Table rates() {
  Table table({{"link", "link"}, {"rate [kHz]", "rate_hz"}});
  table.add_row({"muon, inner", Cell(100'000.0, "100")});
  table.add_row({"calo", Cell(9'500.0, "9.5", Style::warning)});
  return table;
}

}  // namespace

TEST(Table, AlignsNumbersToTheRightAndCarriesUnitsInTitles) {
  EXPECT_EQ(rates().text(false),
            "link         rate [kHz]\n"
            "muon, inner         100\n"
            "calo                9.5\n");
}

TEST(Table, JsonHasBaseUnitsInKeysAndFullValues) {
  EXPECT_EQ(rates().json().dump(0), R"([{"link":"muon, inner","rate_hz":100000.0},{"link":"calo","rate_hz":9500.0}])");
}

TEST(Table, CsvQuotesWhatNeedsIt) { EXPECT_EQ(rates().csv(), "link,rate_hz\n\"muon, inner\",100000.0\ncalo,9500.0\n"); }

TEST(Table, ColoursAreOnlyThereWhenAskedFor) {
  EXPECT_EQ(rates().text(false).find('\x1b'), std::string::npos);
  EXPECT_NE(rates().text(true).find("\x1b[33m"), std::string::npos);
}

TEST(Table, WhatAProcessSaysCannotRuleTheTerminal) {
  Table table(std::vector<Column>{{"text", "text"}});
  table.add_row({"a\x1b[2Jb\x7f\r"});
  table.add_row({Cell(Json(),
                      "c\xc2\x9b"
                      "31m\xc2\xb5s")});
  EXPECT_EQ(table.text(false), "text\na?[2Jb??\nc?31m\xc2\xb5s\n");
}

TEST(Table, ARowThatIsTooShortIsFilledWithNothing) {
  Table table({{"a", "a"}, {"b", "b"}});
  table.add_row({1});
  EXPECT_EQ(table.json().dump(0), R"([{"a":1,"b":null}])");
}
