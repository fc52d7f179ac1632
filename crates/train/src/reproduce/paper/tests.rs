//! Whether `paper.toml` was typed right: against itself, the recipes and what the paper concludes.

use std::collections::BTreeSet;
use std::path::Path;

use srf_model::config::Recipe;

use super::*;
use crate::recipes;
use crate::reproduce::verdicts::ALIKE_WITHIN;

fn recipe(row: &TableRow) -> Recipe {
    let text = recipes::text(&row.recipe).unwrap_or_else(|| panic!("there is no recipe `{}`", row.recipe));
    Recipe::parse(text, Path::new(&row.recipe)).unwrap()
}

fn rows() -> impl Iterator<Item = (&'static Table, &'static TableRow)> {
    TABLES.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)))
}

#[test]
fn tables_are_found_by_name_and_by_number() {
    let numbers: Vec<&str> = TABLES.iter().map(|table| table.number.as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    for table in TABLES.iter() {
        assert_eq!(Table::find(&table.name).map(|found| &found.number), Some(&table.number));
        assert_eq!(Table::find(&table.number).map(|found| &found.name), Some(&table.name));
    }
    assert!(Table::find("9").is_none());
}

#[test]
fn rows_have_a_figure_for_each_column_and_names_of_their_own() {
    for table in TABLES.iter() {
        let names: BTreeSet<&str> = table.rows.iter().map(TableRow::name).collect();
        assert_eq!(names.len(), table.rows.len(), "{}", table.name);
        for row in &table.rows {
            assert_eq!(row.figures.len(), table.columns.len(), "{}", row.recipe);
        }
    }
    let directories: BTreeSet<(&str, &str)> = rows().map(|(_, row)| (row.directory(), row.recipe.as_str())).collect();
    let of_directories: BTreeSet<&str> = directories.iter().map(|(directory, _)| *directory).collect();
    assert_eq!(of_directories.len(), directories.len(), "two recipes have one directory");
}

#[test]
fn the_parameters_of_recipes_round_to_the_papers_millions() {
    for (_, row) in rows() {
        let found = recipe(row).summary().parameters.total as f64 / 1e6;
        // The paper estimates the sizes of three networks that it quotes.
        let is_estimate = ["blstm-5l-250h", "ulstm-3l-421h", "cnn-10l-maxout"].contains(&row.name());
        let most = if is_estimate { 0.03 } else { 0.005 };
        assert!((found - row.millions).abs() <= most, "{}: {found} {}", row.recipe, row.millions);
    }
}

#[test]
fn error_rates_are_those_in_the_heads_of_the_recipes() {
    let errors = rows().filter(|(table, _)| table.measures(&[Quantity::Error]));
    for (table, row) in errors {
        let text = recipes::text(&row.recipe).unwrap();
        let head = text.lines().find_map(|line| line.strip_prefix("# paper: ")).unwrap();
        let figures = table.columns.iter().zip(row.figures()).filter(|(column, _)| column.quantity == Quantity::Error);
        let shown = |Figure { value, spread }: Figure| match spread {
            Some(spread) => format!("{value:.1} ± {spread} %"),
            None => format!("{value:.1} %"),
        };
        for figure in figures.filter_map(|(_, figure)| figure) {
            assert!(head.contains(&shown(figure)), "{}: `{}` is not in `{head}`", row.recipe, shown(figure));
        }
    }
}

#[test]
fn the_papers_claims_hold_in_its_own_figures() {
    for table in TABLES.iter() {
        for claim in &table.claims {
            let figure = |name: &str| {
                let row = table.row(name).unwrap_or_else(|| panic!("{}: no row `{name}`", claim.says));
                if claim.quantity == Quantity::Parameters {
                    return row.millions;
                }
                let column =
                    table.columns.iter().position(|c| c.quantity == claim.quantity && c.part == crate::corpus::TEST);
                row.figures[column.unwrap()].value
            };
            match &claim.relation {
                Relation::Less(first, second) => {
                    assert!(figure(first) < figure(second), "{}: {}", table.name, claim.says);
                }
                // Well within the margin that is tested here.
                Relation::Alike(first, second) => {
                    assert!(
                        (figure(first) - figure(second)).abs() < 0.5 * ALIKE_WITHIN * figure(first),
                        "{}: {}",
                        table.name,
                        claim.says
                    );
                }
                Relation::AtLeast(name, bound) => assert!(*bound <= figure(name), "{}: {}", table.name, claim.says),
            }
        }
    }
}

#[test]
fn rows_are_chosen_by_name_in_the_order_of_the_table() {
    let table = Table::find("depth").unwrap();
    let names = |typed: &[&str]| {
        let typed: Vec<String> = typed.iter().map(|name| (*name).to_owned()).collect();
        table.rows_named(&typed).map(|rows| rows.into_iter().map(TableRow::name).collect::<Vec<_>>())
    };
    assert_eq!(names(&[]).unwrap().len(), 4);
    assert_eq!(names(&["depth-8", "depth-2"]).unwrap(), ["depth-2", "depth-8"]);
    let error = names(&["Depth-16x"]).unwrap_err();
    assert_eq!(error.to_string(), "table `depth` has no row `Depth-16x`, expected depth-2, depth-4, depth-8, depth-16");
    assert_eq!(error.hint().unwrap(), "did you mean `depth-16`?");
}
