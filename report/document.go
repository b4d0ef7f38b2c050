package report

import "io"

// A document is a report without the syntax of any rendering: headings, paragraphs, lists, tables
// and what is quoted. All texts in it are visible; each printer escapes them for its syntax. It is
// built once, and a printer is a function of it.
type document struct {
	nodes []node
	only  audience  // of what is added next
	foot  footnotes // of the table that is being built
	used  string    // every mark that stands behind a figure
}

// A node is a part of a document: heading, para, list, *table, quote, fold or gap.
type node struct {
	only audience
	is   any
}

// An audience is who gets to see a part. A terminal is brief, and refers to report.md.
type audience int

const (
	everyone audience = iota
	brief             // terminals
	full              // files, which have room for everything
)

type (
	// A heading of level 1 is the document's title, 2 opens a section, 3 a part of it.
	heading struct {
		level int
		title string
		key   string // a name behind it
		state span   // how it went, behind it
	}
	// A para is a paragraph, and an item of a list where it has a mark.
	para struct {
		indent int // levels
		mark   span
		text   []span
	}
	// A list is names with what there is to say of each.
	list struct {
		names style
		texts style
		rows  []fact
	}
	// A verbatim is lines that are shown as they came: evidence, a log, a file.
	verbatim struct {
		language string
		lines    []string
		brief    []string // as a terminal has them
		most     int      // lines of a terminal
		more     string   // what further lines are called there; "" where they are not counted
		indent   int
		mark     string
		last     bool // a terminal shows the end
	}
	// A fold is what a reader may unfold: all there is of one thing.
	fold struct {
		title string // of the thing
		more  string // what is in it
		nodes []node
	}
	// A gap is an empty line where a terminal has one.
	gap struct{}
)

func (d *document) add(parts ...any) {
	for _, x := range parts {
		d.nodes = append(d.nodes, node{d.only, x})
	}
}

// to adds for one audience alone.
func (d *document) to(who audience, add func()) {
	was := d.only
	if was != everyone && who != everyone && who != was {
		return
	}
	if who == everyone {
		who = was
	}
	d.only = who
	add()
	d.only = was
}

// fold adds what is added in it as one thing to unfold.
func (d *document) fold(title, more string, add func()) {
	outer := d.nodes
	d.nodes = nil
	add()
	inner := d.nodes
	d.nodes = outer
	d.add(fold{title, more, inner})
}

// say adds a paragraph; item one with a mark, one level in.
func (d *document) say(text string, st style) { d.add(para{text: []span{{text, st}}, indent: 1}) }

func (d *document) item(mark span, text string, st style) {
	d.add(para{indent: 1, mark: mark, text: []span{{text, st}}})
}

// items adds a list of sentences.
func (d *document) items(mark span, texts []string, st style) {
	for _, text := range texts {
		d.item(mark, text, st)
	}
}

// table adds a table with the footnotes that its cells were given.
func (d *document) table(t *table) {
	t.foot, d.foot = d.foot, nil
	if len(t.rows) > 0 {
		d.add(t)
	}
}

// A table has columns that say what a row is, the labels, and columns of figures.
type table struct {
	groups  string // what the groups of rows are called
	columns []column
	labels  int  // how many of the columns are labels
	bars    bool // each row has a bar behind its labels
	spaced  bool // an empty line before each group
	rows    []tableRow
	foot    footnotes
}

// A column of a table. A terminal leaves out, the highest priority first, what it has no room for
// beside bars; 0 is always shown. Other tables go on below where they are too wide.
type column struct {
	head     string
	left     bool // words, which stand left; labels do anyway
	priority int
	full     bool // too much for a terminal
}

// A tableRow is a row of a table.
type tableRow struct {
	group   string
	cells   []cell
	share   float64 // of the longest bar
	style   style   // of the bar
	message span    // instead of figures
}

// A cell of a table. Marks of one column stand below one another.
type cell struct {
	text  string
	style style
	mark  string
	more  string // behind it in a file
}

// Marks of list items and checks.
var (
	failedMark  = span{"✗", red}
	warningMark = span{"!", yellow}
	passedMark  = span{"✓", green}
	doubtMark   = span{"?", yellow}
	pointMark   = span{"·", dim}
)

// print writes the document for a terminal.
func (d *document) print(w io.Writer, o TerminalOptions) error {
	s := o.screen(w)
	p := &terminal{screen: s}
	p.nodes(d.nodes)
	p.crowded()
	if len(o.Files) > 0 {
		p.heading(heading{level: 2, title: "Files"})
	}
	for i, path := range o.Files { // which may be wider: a path that is cut cannot be opened
		s.write("  " + visible(path) + "\n")
		if i == 0 && o.Earlier {
			p.para(para{indent: 2, mark: warningMark, text: []span{{earlierText, none}}})
		}
	}
	return s.flush()
}

// markdown writes the document as GitHub-flavoured Markdown that is safe to publish: nothing in it
// can add markup, links, mentions or HTML.
func (d *document) markdown(w io.Writer) error {
	p := &markdown{screen: newScreen(w, 0, false)}
	p.nodes(d.nodes)
	return p.flush()
}
