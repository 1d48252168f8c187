# Bulk flows over one link whose queue is under RED, gentle, counting packets, spread as the paper says (wait_ false).
#   ns red.tcl flows=4 min=5 max=15 probability=0.1 weight=0.002
source [file join [file dirname [info script]] common.tcl]
array set param {variant Newreno window 10000 flows 1 limit 145 min 5 max 15 probability 0.1 weight 0.002
    rate 8Mb delay 60ms duration 100 seed 1}
arguments param

set ns [new Simulator]
$defaultRNG seed $param(seed)
lean_packets
Agent/TCP set window_ $param(window)
foreach {key value} {bytes_ false queue_in_bytes_ false gentle_ true wait_ false setbit_ false adaptive_ 0
    mean_pktsize_ 500 idle_pktsize_ 500 drop_tail_ true} { Queue/RED set $key $value }
Queue/RED set thresh_ $param(min)
Queue/RED set maxthresh_ $param(max)
Queue/RED set linterm_ [expr 1.0 / $param(probability)]
Queue/RED set q_weight_ $param(weight)
set a [$ns node]
set b [$ns node]
$ns simplex-link $a $b $param(rate) $param(delay) RED
$ns simplex-link $b $a $param(rate) $param(delay) DropTail
$ns queue-limit $a $b $param(limit)
$ns queue-limit $b $a 1000
set queue [$ns monitor-queue $a $b ""]
set waiting [$queue get-pkts-integrator]
for {set i 0} {$i < $param(flows)} {incr i} { lappend agents [bulk $param(variant) $a $b [expr 0.1 * $i] 0] }

proc finish {} {
    global ns agents queue waiting param
    foreach name {bytes retransmissions timeouts} { set $name 0 }
    foreach pair $agents {
        foreach {tcp sink} $pair break
        set bytes [expr $bytes + [$sink set bytes_]]
        incr retransmissions [$tcp set nrexmitpack_]
        incr timeouts [$tcp set nrexmit_]
    }
    $waiting newpoint [$ns now] 0
    puts [format {{"bytes":%.0f,"retransmissions":%d,"timeouts":%d,"drops":%d,"waiting":%.3f}} \
        $bytes $retransmissions $timeouts [$queue set pdrops_] [expr [$waiting set sum_] / $param(duration)]]
    exit 0
}
$ns at $param(duration) finish
$ns run
