// Package docs runs the commands of the documentation as they are written, and
// compares what they print with what the pages say.
//
// In a page, a block of the language sh is a command. It runs in a copy of the
// folder of the project, in the shell that ran the blocks before it. A block of
// the language text or json, or of none, that follows is what was printed: by
// the command before it, or in the log of the service. In it, … stands for
// anything, and so does a line's end. Times, identifiers and other things that
// differ each time are passed over (see loose).
//
// Comments in front of a block say what cannot be seen:
//
//	<!-- docs: beside make run -->         this command runs first, in a terminal of its own
//	<!-- docs: in its own terminal -->     the block runs until the end of the page, or until the next service is started
//	<!-- docs: ends with 1 -->             a command of the block fails, and is meant to
//	<!-- docs: not run, WHY -->            the block is passed over
//	<!-- docs: not printed -->             the block is not what a command printed
//	<!-- docs: file NAME -->               the block is what the file has in it; such a page finds the SDK's sources
//	<!-- docs: run elsewhere, WHERE -->    another test runs the page
package docs
