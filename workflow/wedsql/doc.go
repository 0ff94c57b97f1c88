// Package wedsql imports flows of WED-SQL (docs/systems.md, WED-SQL): scripts for
// PostgreSQL that declare attributes, triggers and a final condition as rows of tables.
//
//	INSERT INTO wed_attr (aname, adv) VALUES ('step', 'asked'), ('litres', NULL);
//	INSERT INTO wed_trig (tgname, trname, cname, cpred, timeout) VALUES
//	  ('on_asked', 'fetch', 'c_asked', $$step = 'asked' AND litres IS NULL$$, '3d18h');
//	INSERT INTO wed_trig (cpred, cfinal) VALUES ($$step = 'done'$$, True);
//	INSERT INTO wed_flow DEFAULT VALUES;
//
// Statements may come in any order, in a transaction or not, with columns in any order,
// with one row or many. Predicates are read as PostgreSQL reads them: its precedence, its
// quotes, names in small letters unless they stand in quotes; and what comes out has the
// same meaning, in three values. Texts are compared by their characters' numbers, as with
// COLLATE "C". An attribute, which has no type there, takes that of the literals with which
// predicates compare it, else it is a text; literals of two types are a mistake.
//
// Promises: no I/O, no clock, no goroutine; input above [MaxSize] is refused; whatever
// [Parse] accepts has a translation that the native parser takes; every mistake is
// reported as file:line:column: message (hint), also those inside of a predicate.
//
// It imports internal/plain, workflow and workflow/internal/native; cmd/mutirao imports
// it.
package wedsql
