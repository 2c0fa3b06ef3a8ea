#include "cli/output.h"

#include <gtest/gtest.h>

#include <algorithm>

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

namespace {

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    widest = std::max(widest, end - from);
    from = end + 1;
  }
  return widest;
}

Table links() {
  Table table({{"link", "fid"}, {"dead time [%]", "dead"}, {"moved", "moved", true}, {"lost by reason", "lost"}});
  table.add_row({"0x1000000000000000", Cell(0.25, "25"), 0, "late 12, duplicate 3"});
  table.add_row({"0x1000000000010000", Cell(0.5, "50"), 0, "nothing"});
  return table;
}

}  // namespace

TEST(Table, IsAsWideAsItsTextWithoutATerminal) { EXPECT_EQ(widest_line(links().text(false)), 55U); }

TEST(Table, TitlesTakeSeveralLinesOnANarrowTerminal) {
  EXPECT_EQ(links().text(false, 50),
            "                    dead\n"
            "                    time\n"
            "link                 [%]  lost by reason\n"
            "0x1000000000000000    25  late 12, duplicate 3\n"
            "0x1000000000010000    50  nothing\n");
}

TEST(Table, TheLastColumnsAreBelowTheRowIfNothingElseFits) {
  EXPECT_EQ(links().text(false, 30),
            "                    dead\n"
            "                    time\n"
            "link                 [%]\n"
            "0x1000000000000000    25\n"
            "    lost by reason late 12,\n"
            "      duplicate 3\n"
            "0x1000000000010000    50\n"
            "    lost by reason nothing\n");
}

TEST(Table, UnitsStayWithValuesBelowTheRow) {
  Table table({{"a long title", "a"}, {"rate [kHz]", "rate_hz"}});
  table.add_row({"a-long-value", Cell(1500.0, "1.5")});
  EXPECT_EQ(table.text(false, 14), "a long title\na-long-value\n    rate 1.5\n      kHz\n");
}

TEST(Table, AColumnThatSaysNothingIsHiddenFromPeopleOnly) {
  EXPECT_EQ(links().text(false).find("moved"), std::string::npos);
  EXPECT_NE(links().csv().find("moved"), std::string::npos);
  Table moved({{"link", "fid"}, {"moved", "moved", true}});
  moved.add_row({"a", 3});
  EXPECT_NE(moved.text(false).find("moved"), std::string::npos);
}

TEST(Table, LongTextIsBrokenInItsColumn) {
  Table table({{"rule", "rule"}, {"what to do", "next"}});
  table.add_row({"late", "see which links lag behind the others"});
  EXPECT_EQ(table.text(false, 30),
            "rule  what to do\n"
            "late  see which links lag\n"
            "      behind the others\n");
}

TEST(Table, FractionsAreRounded) {
  Table table(std::vector<Column>{{"share", "share"}});
  table.add_row({0.45494375634065043});
  EXPECT_EQ(table.text(false), " share\n0.4549\n");
  EXPECT_EQ(table.json().dump(0), R"([{"share":0.45494375634065043}])");
}
