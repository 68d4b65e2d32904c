//! What is probably not meant in a condition: members that may be missing, and words that mean nothing.

use super::{OBJECTS, ROOTS, children};
use cel::common::ast::{Expr, IdedExpr, LiteralValue};

/// The functions that a condition may call.
pub(super) const FUNCTIONS: [&str; 13] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
];

/// The first call of a function that there is none of.
pub(super) fn unknown_function(expr: &IdedExpr) -> Option<&str> {
    let here = match &expr.expr {
        // operators are calls of names that no text can write
        Expr::Call(call) if call.func_name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            (!FUNCTIONS.contains(&call.func_name.as_str())).then_some(call.func_name.as_str())
        }
        _ => None,
    };
    here.or_else(|| children(expr).into_iter().find_map(unknown_function))
}

/// Whether the whole is a value that is neither yes nor no.
pub(super) fn is_no_question(expr: &IdedExpr) -> bool {
    match &expr.expr {
        Expr::Literal(value) => !matches!(value, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) => true,
        _ => false,
    }
}

/// The members of objects that are used and nowhere asked for with `has()`, each once.
pub(super) fn untested(expr: &IdedExpr) -> Vec<String> {
    let (mut used, mut tested) = (Vec::new(), Vec::new());
    collect(expr, &mut used, &mut tested);
    used.retain(|path| !tested.contains(path));
    used.sort();
    used.dedup();
    used
}

fn collect(expr: &IdedExpr, used: &mut Vec<String>, tested: &mut Vec<String>) {
    if let Expr::Select(select) = &expr.expr
        && let Some(path) = path(expr)
    {
        if select.test { tested.push(path) } else { used.push(path) }
    }
    children(expr).into_iter().for_each(|child| collect(child, used, tested));
}

/// `toolInput.path`, for a member of an object of the event.
fn path(expr: &IdedExpr) -> Option<String> {
    let Expr::Select(select) = &expr.expr else { return None };
    let before = match &select.operand.expr {
        Expr::Ident(name) => {
            let (root, member) = ROOTS.iter().find(|(root, _)| root == name)?;
            OBJECTS.contains(member).then(|| (*root).to_owned())?
        }
        _ => path(&select.operand)?,
    };
    Some(format!("{before}.{}", select.field))
}

/// The texts that a member is compared with, by `==`, `!=` or `in [...]`.
pub(super) fn compared_with(expr: &IdedExpr, member: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Expr::Call(call) = &expr.expr
        && matches!(call.func_name.as_str(), "_==_" | "_!=_" | "@in")
        && call.args.iter().any(|arg| is_member(arg, member))
    {
        let lists = call.args.iter().filter_map(|arg| match &arg.expr {
            Expr::List(list) => Some(&list.elements),
            _ => None,
        });
        found.extend(call.args.iter().chain(lists.flatten()).filter_map(text));
    }
    found.extend(children(expr).into_iter().flat_map(|child| compared_with(child, member)));
    found
}

/// The patterns of `matches()`.
pub(super) fn patterns(expr: &IdedExpr) -> Vec<String> {
    let mut found = Vec::new();
    if let Expr::Call(call) = &expr.expr
        && call.func_name == "matches"
    {
        found.extend(call.args.last().and_then(text));
    }
    found.extend(children(expr).into_iter().flat_map(patterns));
    found
}

fn is_member(expr: &IdedExpr, member: &str) -> bool {
    matches!(&expr.expr, Expr::Ident(name) if ROOTS.iter().any(|(root, of)| root == name && *of == member))
}

fn text(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.to_string()),
        _ => None,
    }
}
