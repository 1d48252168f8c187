# The cases whose speed we measure. Prints the packets delivered in order, from the cumulative
# acknowledgment: `bytes_` of the sink wraps at 2^31.
#   ns speed.tcl case=dumbbell flows=100 duration=30
# link      one flow, 1 Gbit/s, 20 ms
# dumbbell  `flows` flows, each between hosts of its own, over 1 Gbit/s; 20 ms one way
# papers    two flows on the first path of the papers' topology
# Slow start ends at each flow's share of the pipe, so that few packets are lost.
source [file join [file dirname [info script]] common.tcl]
array set param {case link flows 10 duration 100}
arguments param

set ns [new Simulator]
lean_packets
Agent/TCP set window_ 1000000
set starts [new RNG]
$starts seed 7

proc link {} {
    global ns
    foreach end {a b} { set $end [$ns node] }
    hop $a $b 1Gb 20ms 6000
    return [list [bulk Newreno $a $b 0 4000]]
}
proc dumbbell {flows} {
    global ns starts
    foreach end {left right} { set $end [$ns node] }
    hop $left $right 1Gb 18ms 6000
    for {set i 0} {$i < $flows} {incr i} {
        foreach end {from to} { set $end [$ns node] }
        hop $from $left 10Gb 1ms 100000
        hop $right $to 10Gb 1ms 100000
        lappend agents [bulk Newreno $from $to [$starts uniform 0 1] [expr 4000 / $flows]]
    }
    return $agents
}
proc papers {} {
    global ns
    foreach i {0 1 2 4} { set n($i) [$ns node] }
    foreach {a b} {0 2 2 1 1 4} { hop $n($a) $n($b) 8Mb 30ms 144 }
    return [list [bulk Newreno $n(0) $n(1) 0.1 96] [bulk Newreno $n(0) $n(1) 0.537 96]]
}
switch $param(case) {
    link { set agents [link] }
    dumbbell { set agents [dumbbell $param(flows)] }
    papers { set agents [papers] }
}
proc finish {} {
    global agents
    foreach name {delivered sent retransmissions timeouts} { set $name 0 }
    foreach pair $agents {
        foreach {tcp sink} $pair break
        incr delivered [expr [$tcp set ack_] + 1]
        incr sent [$tcp set ndatapack_]
        incr retransmissions [$tcp set nrexmitpack_]
        incr timeouts [$tcp set nrexmit_]
    }
    puts "{\"delivered\":$delivered,\"sent\":$sent,\"retransmissions\":$retransmissions,\"timeouts\":$timeouts}"
    exit 0
}
$ns at $param(duration) finish
$ns run
