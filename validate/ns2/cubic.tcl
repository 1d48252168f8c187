# One CUBIC flow alone on a link: Agent/TCP/Linux with the kernel's CUBIC of its time, its beta set to RFC 9438's 0.7
# (717 of 1024). Prints what was acknowledged between `from` and `until`, and the window every `step` seconds.
#   ns cubic.tcl rate=20Mb delay=60ms queue=200 ssthresh=250
source [file join [file dirname [info script]] common.tcl]
array set param {rate 20Mb delay 60ms queue 200 ssthresh 250 from 20 until 120 step 0.25}
arguments param

set ns [new Simulator]
lean_packets
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
Agent/TCP set windowInit_ 2
Agent/TCP/Linux set timestamps_ true
set a [$ns node]
set b [$ns node]
hop $a $b $param(rate) $param(delay) $param(queue)
set tcp [new Agent/TCP/Linux]
set sink [new Agent/TCPSink/Sack1]
$sink set ts_echo_rfc1323_ true
$ns attach-agent $a $tcp
$ns attach-agent $b $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$tcp select_ca cubic"
$ns at 0 "$tcp set_ca_default_param cubic beta 717"
$ns at 0 "$tcp set ssthresh_ $param(ssthresh)"
$ns at 0 "$ftp start"

proc sample {} {
    global ns tcp cwnd param
    lappend cwnd [format %.0f [$tcp set cwnd_]]
    $ns at [expr [$ns now] + $param(step)] sample
}
proc begin {} {
    global tcp first
    set first [list [$tcp set ack_] [$tcp set nrexmitpack_]]
    sample
}
proc finish {} {
    global tcp cwnd first
    set acked [expr [$tcp set ack_] - [lindex $first 0]]
    set again [expr [$tcp set nrexmitpack_] - [lindex $first 1]]
    puts "{\"acked\":$acked,\"retransmissions\":$again,\"cwnd\":\[[join $cwnd ,]\]}"
    exit 0
}
$ns at $param(from) begin
$ns at $param(until) finish
$ns run
