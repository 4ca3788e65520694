package docs

import (
	"fmt"
	"strconv"
	"strings"
)

// block is a command in a page with its expected output, or the content of a file.
type block struct {
	line     int // line of the page where the content begins
	command  string
	file     string // name of the file that the block is the content of; empty for a command
	terminal bool   // runs in its own terminal while the next blocks run
	fails    bool   // a command in it is expected to fail
	again    bool   // runs until its output is the expected one
	outputs  []expectedOutput
}

type expectedOutput struct {
	line int
	text string
}

// parsePage returns the blocks of a page in order, or an error with the line of a marker or block
// that is invalid.
func parsePage(page string) ([]block, error) {
	p := pageParser{lines: strings.Split(page, "\n")}
	for p.at < len(p.lines) {
		line := strings.TrimSpace(p.lines[p.at])
		p.at++
		var err error
		switch {
		case strings.HasPrefix(line, "<!-- docs: "):
			err = p.parseMarker(strings.TrimSuffix(strings.TrimPrefix(line, "<!-- docs: "), " -->"))
		case strings.HasPrefix(line, "```"):
			err = p.parseBlock(strings.TrimPrefix(line, "```"))
		}
		if err != nil {
			return nil, err
		}
	}
	if p.skipPage {
		return nil, nil
	}
	return p.blocks, nil
}

type pageParser struct {
	lines  []string
	at     int // index of the next line
	blocks []block

	next     block // properties of the next block, from markers before it
	skipNext bool  // the next block is ignored
	skipPage bool  // the whole page is ignored
}

// parseMarker applies a comment `<!-- docs: words -->`.
func (p *pageParser) parseMarker(words string) error {
	command, otherTerminal := strings.CutPrefix(words, "in another terminal: ")
	code, ends := strings.CutPrefix(words, "ends with ")
	file, isFile := strings.CutPrefix(words, "file ")
	switch {
	case otherTerminal:
		p.blocks = append(p.blocks, block{line: p.at, command: command + "\n", terminal: true})
	case words == "in its own terminal":
		p.next.terminal = true
	case words == "again until it prints this":
		p.next.again = true
	case isFile:
		p.next.file = file
	case ends:
		if n, err := strconv.Atoi(code); err != nil || n == 0 {
			return fmt.Errorf("line %d: %q is not the exit code of a failure, want a number other than 0", p.at, code)
		}
		p.next.fails = true
	case strings.HasPrefix(words, "run elsewhere, "):
		p.skipPage = true
	case words == "not printed", strings.HasPrefix(words, "not run, "):
		p.skipNext = true
	default:
		return fmt.Errorf("line %d: unknown marker %q, see the package documentation of test/docs", p.at, words)
	}
	return nil
}

// parseBlock reads a code block up to its closing fence; the opening fence has been read.
func (p *pageParser) parseBlock(language string) error {
	begins := p.at + 1
	var content strings.Builder
	for ; ; p.at++ {
		if p.at == len(p.lines) {
			return fmt.Errorf("line %d: the code block is not closed", begins)
		}
		if strings.TrimSpace(p.lines[p.at]) == "```" {
			p.at++
			break
		}
		content.WriteString(p.lines[p.at] + "\n")
	}
	b, skip := p.next, p.skipNext
	p.next, p.skipNext = block{}, false
	if skip {
		return nil
	}
	switch {
	case language == "sh", b.file != "":
		b.line, b.command = begins, content.String()
		p.blocks = append(p.blocks, b)
	case language == "", language == "text", language == "json":
		if len(p.blocks) > 0 {
			last := &p.blocks[len(p.blocks)-1]
			last.outputs = append(last.outputs, expectedOutput{begins, content.String()})
		}
	}
	return nil
}
