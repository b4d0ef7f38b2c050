// Package scripted is a relay for tests that answers by a script, with known counts and known
// delays: what a figure must come to can be computed from it. It serves in the test's own process
// (Serve), or as a process of its own that relaybench launches like any relay (External).
//
// It is the reference relay (relays/reference) behind a line that holds back, changes, leaves out
// and counts messages. What the script does not name is answered as that relay answers it.
package scripted

import "time"

// Script says how the relay behaves. The zero Script is an honest relay; each field is one fault,
// one delay or one load.
//
// "Every n-th" counts from the first message after the Honest ones, over all connections together
// and anew at each boot: of k messages k/n are struck, rounded down; 0 strikes none. Of several
// that would strike one EVENT, the first in the order below does. A delay counts from when the
// message that is answered was read; what comes later all the same is sent at once.
type Script struct {
	// EVENTs until which everything is answered as by the zero Script: for what has to get through
	// a boot or a preflight first.
	Honest int

	// Of EVENT.
	HangUpEvery    int           // dropped with its connection, without a close frame
	SilentEvery    int           // not stored, and never answered
	RefuseEvery    int           // not stored, and answered with OK false
	RefuseReasons  []string      // one after another; "blocked: by script" unless set
	WrongIDEvery   int           // not stored, and answered with OK true for an id that nobody sent
	LoseEvery      int           // not stored, and answered with OK true
	StoreAfter     time.Duration // answered with OK true at once, and stored so much later
	DuplicateEvery int           // stored, and answered with OK true and "duplicate:"
	OKAfter        time.Duration // how long each OK is held back
	GarbageEvery   int           // a frame that is no message comes before the answer
	Garbage        string        // that frame; "]]garbage" unless set
	FreezeAt       int           // at the n-th, nothing is read, written or accepted for a while
	Freeze         time.Duration // that while
	DieAt          int           // at the n-th, the process kills itself; External only

	// Of REQ, and what is said of it.
	Answer        []string          // events as JSON, or anything else; nil: those that are stored
	FirstAfter    time.Duration     // how long the first event is held back
	EOSEAfter     time.Duration     // how long the further events are, and EOSE or CLOSED
	CloseEvery    int               // answered with CLOSED alone
	CloseReason   string            // of that; "error: by script" unless set
	IgnoreEvery   int               // not answered at all
	Cap           int               // events in one answer at most
	LeaveOutEvery int               // event of all answers
	Alter         map[string]string // fields of each event sent, and the JSON put in place of theirs
	Foreign       string            // an event as JSON that begins each answer
	SubID         string            // under which events are sent, in place of the REQ's own
	Notice        string            // the text of a NOTICE before each answer
	LiveAfter     time.Duration     // how long an event is held back that comes after EOSE
	OnlyReqs      string            // of all of these, only REQs whose text holds it are struck
	AlterEvery    int               // event of all answers to which Alter and SubID apply; 0: each
	RepeatEvery   int               // event of all answers, which is sent twice
	HideTimes     int               // answers that would hold an event, and do not: the first so many for each event
	HangUpAfter   int               // events of one answer, with which the connection is dropped
	Giant         int               // bytes of a frame that comes in place of the answer
	Pings         bool              // without end, in place of the answer
	NoticesEvery  time.Duration     // a NOTICE, without end, in place of the answer
	InventEvery   time.Duration     // an event of nobody, older each time, without end, in place of the answer
	EventEvery    time.Duration     // between one event of an answer and the next

	// Of COUNT (NIP-45) and NEG-OPEN, NEG-MSG (NIP-77).
	CountAfter time.Duration // how long each count is held back
	CountOff   int64         // is added to it
	CountReply string        // the message in place of it, in which SUB stands for the subscription id
	NegAfter   time.Duration // how long each NEG-MSG and NEG-ERR is held back
	NegError   string        // the reason of the NEG-ERR with which NEG-OPEN is answered
	NegReply   string        // the payload of the NEG-MSG with which NEG-OPEN and NEG-MSG are answered
	NegFirst   int           // so many NEG-OPENs, over all connections, are answered rightly before

	// Of the relay as a whole.
	Faults      []string      // of the reference relay behind: see reference.FaultHelp
	NIP11       string        // the information document; the reference relay's unless set
	AcceptAfter time.Duration // how long each WebSocket handshake is held back

	// What it uses; a message here is an EVENT, REQ, COUNT or NEG-OPEN.
	CPUPerMessage   time.Duration // processor time, at least
	WritePerMessage int           // bytes written to the file "written" in {dir}
	Fsync           bool          // after each of these writes
	Sparse          int64         // apparent bytes of a file in {dir} of which none is allocated
	Memory          int64         // bytes that are allocated and touched at boot
	Files           int           // files that are held open

	// How it ends, and begins again.
	Persist       bool          // events are kept in a file in {dir}, from before their OK on
	StopAfter     time.Duration // from SIGTERM to its end, in which it goes on serving
	LoseOnStop    int           // every n-th stored event is lost then: 1 is all, 100 a hundredth
	ForgetOnStart bool          // it begins with nothing, whatever is in {dir}
	ReverseOnStop bool          // once it has been stopped, answers come oldest first
	StartOnce     bool          // once it has been stopped, it exits with 1 when it starts; External only

	// Its own commands, which need the relay stopped; nil: it has none. Setting one sets Persist.
	Import   *Command
	SyncWith *Command // by negentropy, in the direction asked for
}

// Command is what one of the relay's own commands does beside its work.
type Command struct {
	Takes     time.Duration // at least, from its start to its end
	LoseEvery int           // event of the store, which is lost at the end
	Exit      int           // its exit status
	CPU       time.Duration // processor time, at least
	Writes    int           // bytes that it writes to the file "written" in {dir}
	Memory    int64         // bytes that are allocated and touched all the while
	TalkEvery time.Duration // it prints a line, without end, in place of its work
}

func (s *Script) persists() bool { return s.Persist || s.Import != nil || s.SyncWith != nil }

// nth says whether the n-th of its kind, from 1, is struck.
func nth(n int64, every int) bool { return every > 0 && n > 0 && n%int64(every) == 0 }
