package docs

import (
	"fmt"
	"strconv"
	"strings"
)

// block is a command of a page, with what it is said to print, or a file.
type block struct {
	line     int // of the page, where the content begins
	command  string
	file     string // the name of the file whose content the command is; empty for a command
	terminal bool   // runs beside what follows
	fails    bool   // a command in it does not end with 0, and is meant to
	printed  []printed
}

type printed struct {
	line int
	text string
}

// parse returns the commands of a page in order.
func parse(page string) ([]block, error) {
	p := parser{lines: strings.Split(page, "\n")}
	for p.at < len(p.lines) {
		line := strings.TrimSpace(p.lines[p.at])
		p.at++
		var err error
		switch {
		case strings.HasPrefix(line, "<!-- docs: "):
			err = p.note(strings.TrimSuffix(strings.TrimPrefix(line, "<!-- docs: "), " -->"))
		case strings.HasPrefix(line, "```"):
			err = p.fenced(strings.TrimPrefix(line, "```"))
		}
		if err != nil {
			return nil, err
		}
	}
	if p.all {
		return nil, nil
	}
	return p.blocks, nil
}

type parser struct {
	lines  []string
	at     int // the next line
	blocks []block

	next block // what comments say of the block that follows
	skip bool  // pass the block that follows over
	all  bool  // pass all blocks over
}

func (p *parser) note(words string) error {
	command, beside := strings.CutPrefix(words, "beside ")
	code, ends := strings.CutPrefix(words, "ends with ")
	file, isFile := strings.CutPrefix(words, "file ")
	switch {
	case beside:
		p.blocks = append(p.blocks, block{line: p.at, command: command + "\n", terminal: true})
	case words == "in its own terminal":
		p.next.terminal = true
	case isFile:
		p.next.file = file
	case ends:
		if n, err := strconv.Atoi(code); err != nil || n == 0 {
			return fmt.Errorf("line %d: %q is no exit code of a failure", p.at, code)
		}
		p.next.fails = true
	case strings.HasPrefix(words, "run elsewhere, "):
		p.all = true
	case words == "not printed", strings.HasPrefix(words, "not run, "):
		p.skip = true
	default:
		return fmt.Errorf("line %d: nobody knows what %q means", p.at, words)
	}
	return nil
}

// fenced takes a block, whose first fence is behind.
func (p *parser) fenced(language string) error {
	begins := p.at + 1
	var content strings.Builder
	for ; ; p.at++ {
		if p.at == len(p.lines) {
			return fmt.Errorf("line %d: the block has no end", begins)
		}
		if strings.TrimSpace(p.lines[p.at]) == "```" {
			p.at++
			break
		}
		content.WriteString(p.lines[p.at] + "\n")
	}
	b, skip := p.next, p.skip
	p.next, p.skip = block{}, false
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
			last.printed = append(last.printed, printed{begins, content.String()})
		}
	}
	return nil
}
