package relays

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
)

// oneSpelling turns the placeholders that may be typed with either brackets into those with braces.
var oneSpelling = strings.NewReplacer("<port>", "{port}", "<dir>", "{dir}")

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// SplitName takes NAME=COMMAND or NAME=ws://… apart, which every flag that takes a command is given
// as. The name is empty where text is a command alone, which may begin with NAME=VALUE words that
// become its environment: DEBUG=1 /path/relay is one. What stands before the first = is a name
// where a program or an address follows it, else a variable's where a program follows later; where
// neither is to be found, upper-case letters are a variable's. The error is that both could be
// meant.
func SplitName(text string, getenv func(string) string) (name, command string, err error) {
	text = strings.TrimSpace(text)
	before, after, ok := strings.Cut(text, "=")
	if !ok || !nameRule.MatchString(before) {
		return "", text, nil
	}
	words, err := shellquote.Split(after)
	if err != nil || len(words) < 2 || !assignment.MatchString(before+"=") || assignment.MatchString(words[0]) || strings.HasPrefix(after, " ") {
		return before, after, nil // what is wrong with the quotes is said of the command
	}
	program := words[1:]
	for len(program) > 1 && assignment.MatchString(program[0]) {
		program = program[1:]
	}
	found := func(word string) bool { _, err := locate(word, getenv("PATH")); return err == nil }
	variable := strings.ToUpper(before) == before && !strings.HasPrefix(program[0], "-")
	switch isName, isVariable := found(words[0]), found(program[0]); {
	case isName && isVariable && variable:
		return "", "", fmt.Errorf("%s may be the relay's name or a variable of its environment: write 'NAME=%s=… COMMAND' or another name", before, before)
	case !isName && (isVariable || variable):
		return "", text, nil
	}
	return before, after, nil
}

// FromTemplate makes a definition from --relay NAME=COMMAND. The command is split as a POSIX shell
// splits words, may begin with NAME=VALUE words that become its environment, and must hold {port}
// (or <port>); {dir} (or <dir>) is its own empty folder. A relay whose command has no {dir} runs
// inside that folder, so that a database at a fixed relative path is new at each boot all the same.
// A ws:// or wss:// address instead of a command stands for a relay that already runs. Errors are
// one sentence that says what to write instead.
func FromTemplate(name, command string) (Definition, error) {
	command = strings.TrimSpace(command)
	d := Definition{Name: name, Title: name, Family: name, Command: command, Template: true, Durability: DurabilityOpen}
	if scheme, _, ok := strings.Cut(command, "://"); ok && IsName(name) && !strings.ContainsAny(scheme, " \t/'\"=") {
		d.Command, d.Template, d.URL = "", false, command
		d.Notes = []string{"already running, not launched here: no disk, CPU, memory or restart figures, and it may have held events before"}
		if _, err := ParseURL(command); err != nil {
			return Definition{}, fmt.Errorf("relay %s: %w", name, err)
		}
		return d, nil
	}
	words, err := splitWords(command)
	for i, w := range words {
		words[i] = oneSpelling.Replace(w)
	}
	for len(words) > 0 && assignment.MatchString(words[0]) {
		key, value, _ := strings.Cut(words[0], "=")
		if d.Env == nil {
			d.Env = map[string]string{}
		}
		d.Env[key] = value
		words = words[1:]
	}
	if err == nil {
		d.Command = shellquote.Join(words...)
	}
	if err := d.validate(); errors.Is(err, errNoPort) {
		return Definition{}, fmt.Errorf("relay %s: the command has no {port}, so the relay cannot be told where to listen; "+
			"write {port} where its port belongs: --relay '%s=%s --port {port}'", name, name, command)
	} else if err != nil {
		return Definition{}, err
	}
	return d, nil
}

// ParseURL reads the URL of a relay, and gives it the one form by which it is known here. The error
// is a sentence that says what such a URL looks like; it does not repeat what may be a password.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	said := strconv.Quote(text)
	if strings.Contains(text, "@") {
		said = "the address"
	}
	switch bad := (*url.Error)(nil); {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("%s cannot be read and is no URL of a relay: it must look like wss://host or ws://host:port (%w)", said, bad.Err)
	case u.Opaque != "" || u.Scheme == "":
		return nil, fmt.Errorf("%s is no URL of a relay: it must look like wss://host or ws://host:port", said)
	case u.Scheme != "ws" && u.Scheme != "wss":
		return nil, fmt.Errorf("%s is no URL of a relay, which begins with ws://, or wss:// where it is encrypted: write ws://host:port or wss://host", said)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host: it must look like wss://host or ws://host:port", said)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return nil, fmt.Errorf("%s: there is no port %s; ports are numbers from 1 to 65535", said, u.Port())
	}
	u.Host = strings.ToLower(u.Host)
	if u.Path == "/" {
		u.Path = ""
	}
	return u, nil
}

// External says whether the relay already runs somewhere and is only connected to.
func (d *Definition) External() bool { return d.URL != "" }
