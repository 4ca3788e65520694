package instance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

// proxyCommands are the commands that a RedisProxy forwards. HELLO and CLIENT are not among them,
// as in Envoy's Redis proxy.
var proxyCommands = []string{"PING", "AUTH", "SELECT", "GET", "SET", "INCRBY", "EXPIRE", "PEXPIRE", "EVAL", "EVALSHA"}

// RedisProxy is a proxy in front of a Valkey server that forwards a few commands. A connection to
// it ends with the connection to the server.
type RedisProxy struct {
	Address string // host:port

	listener net.Listener
	target   string
	refusal  string
}

// NewRedisProxy starts a proxy in front of target (host:port). It answers an unknown command with
// refusal, a format of the command's name without the end of the line; if refusal is empty, it
// closes the connection.
func NewRedisProxy(target, refusal string) (*RedisProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	p := &RedisProxy{Address: l.Addr().String(), listener: l, target: target, refusal: refusal}
	go p.acceptConnections()
	return p, nil
}

// Close closes the listener; connections end with their clients.
func (p *RedisProxy) Close() { _ = p.listener.Close() } // an error changes nothing

func (p *RedisProxy) acceptConnections() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close() // as the server itself would refuse the client
			continue
		}
		go p.forwardCommands(client, server)
	}
}

// forwardCommands forwards one command after the other until a connection ends.
func (p *RedisProxy) forwardCommands(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	requests, answers := bufio.NewReader(client), bufio.NewReader(server)
	for {
		command, err := readMessage(requests)
		if err != nil {
			return
		}
		answer := ""
		// a command is an array: the number of parts, the length of the name, and the name
		name := strings.Split(command, "\r\n")[2]
		switch {
		case slices.Contains(proxyCommands, strings.ToUpper(name)):
			if _, err := io.WriteString(server, command); err != nil {
				return
			}
			if answer, err = readMessage(answers); err != nil {
				return
			}
		case p.refusal == "":
			return
		default:
			answer = fmt.Sprintf(p.refusal+"\r\n", name)
		}
		if _, err := io.WriteString(client, answer); err != nil {
			return
		}
	}
}

// readMessage returns one RESP2 message as it was sent.
func readMessage(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:])) // simple messages have no number
	switch line[0] {
	case '*':
		for range n {
			part, err := readMessage(r)
			if err != nil {
				return "", err
			}
			line += part
		}
	case '$':
		if n < 0 {
			return line, nil
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		line += string(text)
	}
	return line, nil
}
