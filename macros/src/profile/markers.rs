//! Inserts the markers into a body.
//!
//! | where | marker | what it notes |
//! |---|---|---|
//! | before a statement | `FUNCTION.line(7);` | control comes to line 7 |
//! | before a block's last statement | `let _end = FUNCTION.at_end(9);` | when dropped: control comes to the brace |
//! | first in a loop's body | `let _turn = FUNCTION.turn(4, 9);` | when dropped after line 9: back to line 4 |
//! | last in a loop's body, before `continue` | `FUNCTION.line(4);` | back to the loop's head |
//! | first in a closure | `let _inner = FUNCTION.nested(5);` | line 5; when dropped: back to the line of the call |
//!
//! The end of a block is only marked if the block has a `let`: leaving it frees memory. A marker for a line that control is
//! known to be on already is left out.
//!
//! Markers before statements have the statements' own spans. So if the compiler reports a lint ("unreachable") for the first
//! statement, the report looks the same. All other markers have the macro's spans, where lints are silent.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, Lifetime, Pat, Stmt};

/// What happens at the end of a block.
#[derive(Clone, Copy)]
enum End {
    /// The code after the block goes on.
    Plain,
    /// Control goes back to the loop's head on this line.
    Loop { head: usize },
}

/// Loop around the present statement.
struct Loop {
    label: Option<Lifetime>,
    /// The line that `continue` leads to, if that is noted.
    next: Option<usize>,
}

/// Walker through a body.
pub(super) struct Markers {
    first_line: usize,
    last_line: usize,
    /// The line on which the run-time part believes control to be here, if that is certain.
    current: Option<usize>,
    inserted: usize,
    loops: Vec<Loop>,
}

impl Markers {
    /// Makes a walker for a function on these lines. Code from elsewhere (from a macro) gets no markers.
    pub(super) fn new(first_line: usize, last_line: usize) -> Markers {
        Markers {
            first_line,
            last_line,
            current: None,
            inserted: 0,
            loops: Vec::new(),
        }
    }

    /// Inserts markers into the body of the function.
    pub(super) fn body(&mut self, block: &mut Block) {
        self.current = None;
        self.block(block, End::Plain, true);
    }

    fn line_of(&self, span: Span) -> Option<usize> {
        let line = span.start().line;
        (self.first_line..=self.last_line)
            .contains(&line)
            .then_some(line)
    }

    /// Returns a marker of the macro's own.
    fn own(&mut self, line: usize, near: Span) -> Stmt {
        self.inserted += 1;
        let line = number(line);
        let span = ours(near);
        Stmt::Expr(
            Expr::Verbatim(quote_spanned!(span=> __HEAPRAY_FUNCTION.line(#line);)),
            None,
        )
    }

    /// Returns a guard that is dropped at the end of its block.
    fn guard(&mut self, call: TokenStream, near: Span) -> Stmt {
        self.inserted += 1;
        let span = ours(near);
        syn::parse_quote_spanned!(span=> let __heapray_end = __HEAPRAY_FUNCTION.#call;)
    }

    /// Inserts the marker before `statement`, if its line is not known already.
    fn before(&mut self, statement: &Stmt, out: &mut Vec<Stmt>) {
        let (first, mut last) = ends(statement);
        if let Stmt::Macro(call) = statement {
            // The span without the semicolon, as the compiler uses it.
            last = ends(&call.mac).1;
        }
        let Some(line) = self.line_of(first) else {
            return;
        };
        if self.current == Some(line) {
            return;
        }
        self.current = Some(line);
        self.inserted += 1;
        let conditions = attributes(statement).iter();
        let conditions = conditions.filter(|attribute| attribute.path().is_ident("cfg"));
        let line = number(line);
        let call = quote_spanned!(first=> __HEAPRAY_FUNCTION.line(#line));
        let end = quote_spanned!(last=> ;);
        out.push(Stmt::Expr(
            Expr::Verbatim(quote!(#(#conditions)* #call #end)),
            None,
        ));
    }

    fn block(&mut self, block: &mut Block, end: End, always_close: bool) {
        let closes = always_close
            || block
                .stmts
                .iter()
                .any(|statement| matches!(statement, Stmt::Local(_)));
        let close = self.line_of(block.brace_token.span.close());
        let statements = std::mem::take(&mut block.stmts);
        let last = statements
            .iter()
            .rposition(|statement| !matches!(statement, Stmt::Item(_)));
        let close = close.filter(|_| closes);
        if let (End::Loop { head }, Some(close)) = (end, close)
            && head != close
        {
            let (head, close) = (number(head), number(close));
            let near = block.brace_token.span.open();
            let turn = self.guard(quote!(turn(#head, #close)), near);
            block.stmts.push(turn);
        }
        // The line that control is on after the last statement.
        let target = match end {
            End::Plain => close,
            End::Loop { head } => Some(close.unwrap_or(head)),
        };
        for (nth, mut statement) in statements.into_iter().enumerate() {
            if matches!(statement, Stmt::Item(_)) {
                block.stmts.push(statement);
                continue;
            }
            self.before(&statement, &mut block.stmts);
            let line = self.current;
            self.visit_stmt_mut(&mut statement);
            let ending = target.filter(|_| last == Some(nth));
            let ending = ending.filter(|&target| {
                matches!(end, End::Loop { .. }) || line != Some(target) || self.current.is_none()
            });
            match ending {
                None => block.stmts.push(statement),
                Some(_) if diverges(&statement) => block.stmts.push(statement),
                Some(target) if appends(&statement, end) => {
                    let (_, near) = ends(&statement);
                    block.stmts.push(statement);
                    let marker = self.own(target, near);
                    block.stmts.push(marker);
                }
                Some(target) => {
                    let target = number(target);
                    let (near, _) = ends(&statement);
                    let guard = self.guard(quote!(at_end(#target)), near);
                    block.stmts.push(guard);
                    block.stmts.push(statement);
                }
            }
        }
        if last.is_none()
            && let End::Loop { head } = end
        {
            let marker = self.own(head, block.brace_token.span.open());
            block.stmts.push(marker);
        }
        self.current = None;
    }

    /// Handles a block to which control comes from line `at`. Control is there again afterwards, if no marker was passed.
    fn nested(&mut self, block: &mut Block, at: Option<usize>, end: End) {
        let before = self.inserted;
        self.current = at;
        self.block(block, end, false);
        self.current = if self.inserted == before { at } else { None };
    }

    /// Handles several ways from line `at`, of which control takes one.
    fn branches(&mut self, at: Option<usize>, walk: impl FnOnce(&mut Markers)) {
        let before = self.inserted;
        walk(self);
        self.current = if self.inserted == before { at } else { None };
    }

    fn arm(&mut self, body: &mut Box<Expr>, at: Option<usize>) {
        self.current = at;
        if let Expr::Block(block) = &mut **body
            && block.label.is_none()
        {
            return self.nested(&mut block.block, at, End::Plain);
        }
        let (first, _) = ends(body);
        match self.line_of(first) {
            Some(line) if Some(line) != at => {
                let marker = self.own(line, first);
                self.current = Some(line);
                self.visit_expr_mut(body);
                let braced = quote_spanned!(ours(first)=> { #marker #body });
                **body = Expr::Verbatim(braced);
            }
            _ => self.visit_expr_mut(body),
        }
    }

    /// Handles a closure, or an `async` block, which runs when it is called, from any line.
    fn inner(&mut self, body: &mut Block) {
        let line = body
            .stmts
            .first()
            .map(|first| ends(first).0)
            .and_then(|first| self.line_of(first));
        let Some(line) = line else { return };
        let outer = (self.current, std::mem::take(&mut self.loops));
        self.current = Some(line);
        self.block(body, End::Plain, false);
        let line = number(line);
        let nested = self.guard(quote!(nested(#line)), body.brace_token.span.open());
        let items = super::leading_items(&body.stmts);
        body.stmts.insert(items, nested);
        (self.current, self.loops) = outer;
    }

    /// Returns whether all of `tokens` is on the line that control is on already.
    fn is_on_this_line(&self, tokens: &impl ToTokens) -> bool {
        let (first, last) = ends(tokens);
        self.line_of(first)
            .is_none_or(|line| Some(line) == self.current && last.end().line == line)
    }

    fn looped(&mut self, label: Option<Lifetime>, body: &mut Block, head: Option<usize>) {
        let has_let = body
            .stmts
            .iter()
            .any(|statement| matches!(statement, Stmt::Local(_)));
        let close = self
            .line_of(body.brace_token.span.close())
            .filter(|_| has_let);
        let next = head.map(|head| close.unwrap_or(head));
        self.loops.push(Loop { label, next });
        let end = head.map_or(End::Plain, |head| End::Loop { head });
        self.nested(body, head, end);
        self.loops.pop();
    }

    /// Returns the line that `continue` leads to.
    fn next_turn(&self, label: Option<&Lifetime>) -> Option<usize> {
        let mut loops = self.loops.iter().rev();
        let target = match label {
            None => loops.next(),
            Some(label) => loops.find(|around| around.label.as_ref() == Some(label)),
        };
        target?.next
    }
}

impl VisitMut for Markers {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let at = self.current;
        match expr {
            Expr::If(branch) => self.branches(at, |markers| {
                markers.visit_expr_mut(&mut branch.cond);
                let at = markers.current;
                markers.nested(&mut branch.then_branch, at, End::Plain);
                if let Some((_, otherwise)) = &mut branch.else_branch {
                    markers.current = at;
                    markers.visit_expr_mut(otherwise);
                }
            }),
            Expr::Match(choice) => self.branches(at, |markers| {
                markers.visit_expr_mut(&mut choice.expr);
                let at = markers.current;
                for arm in &mut choice.arms {
                    if let Pat::Guard(guarded) = &mut arm.pat {
                        markers.current = at;
                        markers.visit_expr_mut(&mut guarded.guard);
                    }
                    markers.arm(&mut arm.body, at);
                }
            }),
            Expr::ForLoop(each) => {
                let head = self.line_of(each.for_token.span);
                self.visit_expr_mut(&mut each.expr);
                let label = each.label.as_ref().map(|label| label.name.clone());
                self.looped(label, &mut each.body, head);
            }
            Expr::While(each) => {
                let head = self.line_of(each.while_token.span);
                self.visit_expr_mut(&mut each.cond);
                let label = each.label.as_ref().map(|label| label.name.clone());
                self.looped(label, &mut each.body, head);
            }
            Expr::Loop(each) => {
                let label = each.label.as_ref().map(|label| label.name.clone());
                self.looped(label, &mut each.body, None);
            }
            Expr::Block(inner) => self.nested(&mut inner.block, at, End::Plain),
            Expr::Unsafe(inner) => self.nested(&mut inner.block, at, End::Plain),
            Expr::Async(inner) if !self.is_on_this_line(&inner.block) => {
                self.inner(&mut inner.block);
            }
            Expr::Closure(closure) if !self.is_on_this_line(&closure.body) => {
                match &mut *closure.body {
                    Expr::Block(body) if body.label.is_none() => self.inner(&mut body.block),
                    body => {
                        let span = ours(ends(body).0);
                        let mut block = Block {
                            brace_token: syn::token::Brace(span),
                            stmts: vec![Stmt::Expr(body.clone(), None)],
                        };
                        self.inner(&mut block);
                        *body = Expr::Verbatim(block.into_token_stream());
                    }
                }
            }
            Expr::Continue(jump) => {
                if let Some(line) = self.next_turn(jump.label.as_ref()) {
                    let near = jump.continue_token.span;
                    let marker = self.own(line, near);
                    let braced = quote_spanned!(ours(near)=> { #marker #jump });
                    *expr = Expr::Verbatim(braced);
                }
            }
            Expr::Repeat(repeat) => self.visit_expr_mut(&mut repeat.expr),
            // Evaluated while the program is compiled; unstable; all on one line.
            Expr::Const(_) | Expr::TryBlock(_) | Expr::Async(_) | Expr::Closure(_) => {}
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        let Some(init) = &mut local.init else { return };
        self.visit_expr_mut(&mut init.expr);
        if let Some((_, otherwise)) = &mut init.diverge {
            let at = self.current;
            self.visit_expr_mut(otherwise);
            // Control that comes to the next statement has not been there.
            self.current = at;
        }
    }

    // Code that does not run, or not now: items, types with their constants, patterns, macros' arguments.
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_generic_argument_mut(&mut self, _: &mut syn::GenericArgument) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_macro_mut(&mut self, _: &mut syn::Macro) {}
    fn visit_attribute_mut(&mut self, _: &mut Attribute) {}
}

/// Returns whether the end of a block is noted by a marker after its last `statement`. Otherwise a guard before it notes the
/// end: if the block may have a value, its last statement must stay the last, or the compiler's messages about it change.
fn appends(statement: &Stmt, end: End) -> bool {
    match (statement, end) {
        // A guard would be dropped after the variables that are declared here.
        (Stmt::Local(_), _) => true,
        // The body of a loop has no value.
        (Stmt::Expr(_, Some(_)), End::Loop { .. }) => true,
        (Stmt::Expr(tail, None), End::Loop { .. }) => is_like_a_block(tail),
        (Stmt::Macro(call), End::Loop { .. }) => call.semi_token.is_some(),
        _ => false,
    }
}

fn is_like_a_block(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::If(_)
            | Expr::Match(_)
            | Expr::Block(_)
            | Expr::Unsafe(_)
            | Expr::While(_)
            | Expr::Loop(_)
            | Expr::ForLoop(_)
    )
}

/// Returns whether control certainly does not come to the end of the block after `statement`.
fn diverges(statement: &Stmt) -> bool {
    matches!(
        statement,
        Stmt::Expr(
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) | Expr::Verbatim(_),
            _
        )
    )
}

fn attributes(statement: &Stmt) -> &[Attribute] {
    match statement {
        Stmt::Local(local) => &local.attrs,
        Stmt::Macro(call) => &call.attrs,
        Stmt::Expr(Expr::Block(block), _) => &block.attrs,
        Stmt::Expr(Expr::If(branch), _) => &branch.attrs,
        Stmt::Expr(Expr::MethodCall(call), _) => &call.attrs,
        Stmt::Expr(Expr::Call(call), _) => &call.attrs,
        Stmt::Expr(Expr::Assign(assign), _) => &assign.attrs,
        _ => &[],
    }
}

/// Returns the spans of the first and the last token of `tokens`.
fn ends(tokens: &impl ToTokens) -> (Span, Span) {
    let mut first = None;
    let mut last = Span::call_site();
    for token in tokens.to_token_stream() {
        last = match &token {
            proc_macro2::TokenTree::Group(group) => {
                first = first.or(Some(group.span_open()));
                group.span_close()
            }
            token => token.span(),
        };
        first = first.or(Some(last));
    }
    (first.unwrap_or(last), last)
}

/// Returns the macro's own span, where lints are silent; in suggestions it lies at the code.
fn ours(near: Span) -> Span {
    Span::mixed_site().located_at(near)
}

fn number(line: usize) -> TokenStream {
    let line = u32::try_from(line).unwrap_or(u32::MAX);
    quote!(#line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the body of a function that is `text`, with its markers, in one line.
    fn marked(text: &str) -> String {
        let mut function: syn::ItemFn = syn::parse_str(text).unwrap();
        Markers::new(1, text.lines().count()).body(&mut function.block);
        let text = function.block.to_token_stream().to_string();
        text.replace("__HEAPRAY_FUNCTION", "F")
            .replace(" . ", ".")
            .replace("u32", "")
            .replace(" ;", ";")
            .replace("let __heapray_end", "let end")
            .replace(" ()", "()")
            .replace("line (", "line(")
            .replace("at_end (", "at_end(")
            .replace("turn (", "turn(")
            .replace("nested (", "nested(")
    }

    #[test]
    fn statements_on_a_line_have_one_marker() {
        assert_eq!(
            marked("fn f() {\n a(); b();\n c()\n}"),
            "{ F.line(2); a(); b(); F.line(3); let end = F.at_end(4); c() }"
        );
    }

    #[test]
    fn a_loop_goes_back_to_its_head() {
        assert_eq!(
            marked("fn f() {\n for _ in x {\n a();\n }\n}"),
            "{ F.line(2); let end = F.at_end(5); for _ in x { F.line(3); a(); F.line(2); } }"
        );
        assert_eq!(
            marked("fn f() {\n while x {\n let a = 1;\n continue;\n }\n}"),
            "{ F.line(2); let end = F.at_end(6); while x { let end = F.turn(2 , 5); F.line(3); \
             let a = 1; F.line(4); { F.line(5); continue }; } }"
        );
    }

    #[test]
    fn what_is_run_elsewhere_or_never_has_no_markers() {
        let body = "{\n fn g() {\n a();\n }\n const X: [u8; {\n 1\n }] = [0];\n let _ = [0; {\n 2\n }];\n}";
        let marked = marked(&format!("fn f() {body}"));
        assert_eq!(marked.matches("F.").count(), 2, "{marked}");
        assert!(
            marked.ends_with("F.line(8); let _ = [0; { 2 }]; F.line(11); }"),
            "{marked}"
        );
    }

    #[test]
    fn closures_come_back_and_arms_have_lines() {
        assert_eq!(
            marked("fn f() {\n a(|x| {\n x;\n });\n match y {\n 1 =>\n 2,\n _ => 3,\n }\n}"),
            "{ F.line(2); a (| x | { let end = F.nested(3); x; }); F.line(5); let end = F.at_end(10); \
             match y { 1 => { F.line(7); 2 } , _ => { F.line(8); 3 } , } }"
        );
    }
}
