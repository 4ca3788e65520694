package allowlist

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Snippet is what a user adds to the configuration of a client to install a server.
type Snippet struct {
	Client     Client
	Offer      string // what it installs
	Definition Definition
	Inputs     []Input // what the client requests from the user; VS Code only
	Unlisted   string  // why allow lists cannot have it; empty if they can
}

// Input is a value that a client requests from the user.
type Input struct {
	ID          string
	Description string
	Secret      bool
}

// NewSnippet returns the snippet of a server for a client: of its first streamable HTTP remote,
// else of its first remote with server-sent events, else of its first package. It returns
// fault.NotFound, with the reason, for a server that the client cannot use.
func NewSnippet(r registry.Record, c Client) (Snippet, error) {
	return ParseInstall(r).SnippetOf(c, "")
}

// Install makes the snippets of a server, whose document it reads once.
type Install struct {
	record   registry.Record
	server   server
	readable bool
}

// ParseInstall returns the snippets of a server.
func ParseInstall(r registry.Record) Install {
	s, err := parseServer(r)
	return Install{r, s, err == nil}
}

// Offer is a way to run a server: one of its remotes or packages.
type Offer struct {
	ID   string // "remote-" or "package-" with its number in the document, from 1
	Type string // the transport of a remote, or the type of the registry of a package
	Text string // the URL of a remote, or the identifier of a package
}

// Offers returns the remotes and packages of the server that clients may be able to use, in the order
// in which SnippetOf tries them.
func (i Install) Offers() (all []Offer) {
	for _, r := range i.server.usableRemotes() {
		all = append(all, Offer{r.offer, r.transport, r.url.value})
	}
	for _, p := range i.server.packages {
		all = append(all, Offer{p.offer, p.registryType, p.identifier})
	}
	return all
}

// SnippetOf returns the snippet of an offer for a client. With an empty id it is NewSnippet. It
// returns fault.NotFound, with the reason, for an offer that the client cannot use.
func (i Install) SnippetOf(c Client, offer string) (Snippet, error) {
	r, s := i.record, i.server
	if !i.readable {
		return Snippet{}, fault.Newf(fault.NotFound, "%s cannot be installed: its document cannot be read", r.Name)
	}
	p := programOf(c)
	snippet := Snippet{Client: c}
	name := lastPart(r.Name)
	if p.fullName {
		name = configName(r.Name)
	}
	snippet.Definition = Definition{Name: name, Title: s.title, Description: s.description, Version: r.Version.String()}
	fill := func(at place) filler {
		if c == ClientVSCode {
			return snippet.ask
		}
		return p.filler(s, at)
	}
	var reasons reasonList
	for _, remote := range s.usableRemotes() {
		if offer != "" && offer != remote.offer {
			continue
		}
		if err := remote.check(p); err != nil {
			reasons.add(err)
			continue
		}
		snippet.Offer = remote.offer
		snippet.Unlisted = s.unlisted(c, remote)
		snippet.Definition.Remote = &Remote{remote.transport, remote.url.filled(fill(inURL)), filledValues(remote.headers, fill(inHeader))}
		return snippet, nil
	}
	for _, complete := range []filler{nil, fill(inArgument)} { // first those whose command is in the allow list
		for _, one := range s.packages {
			if offer != "" && offer != one.offer {
				continue
			}
			argv, err := one.localCommand(complete, p.marks())
			if err != nil {
				reasons.add(err)
				continue
			}
			snippet.Offer = one.offer
			switch {
			case c == ClientCodex:
				snippet.Unlisted = errProgramAlone.Error()
			case complete != nil:
				snippet.Unlisted = "each user completes the command"
			}
			snippet.Definition.Package = &Package{
				RegistryType: one.registryType, Identifier: one.identifier, Command: argv,
				Environment: filledValues(one.environment, fill(inEnvironment)),
			}
			return snippet, nil
		}
	}
	return Snippet{}, fault.Newf(fault.NotFound, "%s cannot be installed in a client: %s", r.Name, reasons)
}

// unlisted returns why allow lists cannot have what a client reaches a remote by; empty if they can.
func (s server) unlisted(c Client, r remote) (reason string) {
	if c == ClientCodex {
		_, reason = s.defineRemote(r, Codex)
	} else if _, err := r.pattern(); err != nil {
		reason = err.Error()
	}
	return reason
}

// reasonList has reasons, each once.
type reasonList []string

func (l *reasonList) add(err error) {
	if !slices.Contains(*l, err.Error()) {
		*l = append(*l, err.Error())
	}
}

// String returns the reasons as one text.
func (l reasonList) String() string { return cmp.Or(strings.Join(l, "; "), nothingToStart) }

var notInInput = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// ask adds an input and returns the reference to it. Values with the same name are asked once.
func (s *Snippet) ask(name string, about input) string {
	id := s.Definition.Name + "-" + plainName(name)
	if !slices.ContainsFunc(s.Inputs, func(i Input) bool { return i.ID == id }) {
		s.Inputs = append(s.Inputs, Input{id, cmp.Or(about.description, name), about.secret})
	}
	return "${input:" + id + "}"
}
