// Package docs runs the commands of the documentation as they are written, and compares their
// output with the pages.
//
// In a page, a code block of the language sh is a command. The test runs it in a copy of the
// project's folder, in the shell that ran the previous blocks. A following block of the language
// text or json, or without a language, is expected output: of the previous command, or of a
// terminal. In it, … matches any text, and so does a line end. The comparison ignores times,
// identifiers and other values that differ in each run (see normalize).
//
// Markers before a block change this:
//
//	<!-- docs: in another terminal: make run -->  runs the command make run first, in its own terminal
//	<!-- docs: in its own terminal -->            the block runs until the page ends or the next service starts
//	<!-- docs: again until it prints this -->     the block is repeated: what it shows takes a moment
//	<!-- docs: ends with 1 -->                    a command of the block is expected to fail
//	<!-- docs: not run, WHY -->                   the block is not run
//	<!-- docs: not printed -->                    the block is not expected output
//	<!-- docs: file NAME -->                      the block is the content of a file, which can import the SDK
//	<!-- docs: run elsewhere, WHERE -->           another test runs the page
package docs
