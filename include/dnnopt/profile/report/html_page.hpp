// Owns the fixed parts of the HTML report: its style and its script. No part loads anything from a network.
#ifndef DNNOPT_PROFILE_REPORT_HTML_PAGE_HPP
#define DNNOPT_PROFILE_REPORT_HTML_PAGE_HPP

#include <string_view>

namespace dnnopt::profile::html {

/// Style sheet: one column that fits a phone, light and dark.
inline constexpr std::string_view style = R"CSS(
:root{--bg:#fff;--fg:#1b1f24;--soft:#667;--line:#d5d9e0;--card:#f6f7f9;--accent:#2563eb}
@media(prefers-color-scheme:dark){:root{--bg:#14171c;--fg:#e6e8ec;--soft:#9aa3b2;--line:#333a45;--card:#1d2229;--accent:#7aa2ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:12px;max-width:1180px;background:var(--bg);color:var(--fg);font:14px/1.45 system-ui,sans-serif}
h1{font-size:20px;margin:4px 0;overflow-wrap:anywhere}
h2{font-size:16px;margin:22px 0 8px}
p{margin:6px 0;color:var(--soft)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(125px,1fr));gap:8px;margin:10px 0}
.facts div{background:var(--card);border-radius:8px;padding:8px 10px}
.facts b{display:block;font-size:17px;overflow-wrap:anywhere}
.facts b.long{font-size:13px}
.facts span{color:var(--soft);font-size:12px}
.stack{display:flex;height:30px;border-radius:6px;overflow:hidden;background:var(--card)}
.stack div{min-width:1px}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;margin:8px 0;font-size:12px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.box{border:1px solid var(--line);border-radius:8px;overflow:hidden;background:var(--card)}
.box p{margin:6px 10px}
svg{display:block;width:100%;touch-action:pan-y;user-select:none}
svg.still{touch-action:auto}
svg text{fill:var(--fg);font-size:11px;pointer-events:none}
svg .axis{stroke:var(--line);stroke-width:1}
svg .soft{fill:var(--soft)}
svg .lane{paint-order:stroke;stroke:var(--card);stroke-width:3px}
.tools{display:flex;flex-wrap:wrap;gap:6px;margin:6px 0}
button{font:inherit;padding:6px 12px;border:1px solid var(--line);border-radius:6px;background:var(--card);color:var(--fg);cursor:pointer}
.row{display:grid;grid-template-columns:minmax(90px,30%) 1fr 72px 46px;gap:8px;align-items:center;padding:2px 0;font-size:12px}
.row .name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.row .track{height:16px;background:var(--card);border-radius:3px}
.row .bar{height:16px;border-radius:3px;min-width:1px}
.row .value{text-align:right;font-variant-numeric:tabular-nums}
@media(max-width:620px){.row{grid-template-columns:1fr 72px 46px;gap:0 8px;padding:4px 0}.row .name{grid-column:1/-1;white-space:normal;overflow-wrap:anywhere}}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:12px;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:3px 8px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child,th.text,td.text{text-align:left}
th{color:var(--soft);font-weight:600;cursor:pointer}
.block{border:1px solid var(--line);border-radius:8px;padding:6px 8px;margin:6px 0;background:var(--card)}
.block small{color:var(--soft)}
.chip{display:inline-block;border-radius:10px;padding:1px 8px;margin:2px 3px 2px 0;font-size:12px;color:#fff;overflow-wrap:anywhere}
.chip.anchor{outline:2px solid var(--fg)}
#tip{position:fixed;z-index:9;display:none;max-width:min(340px,90vw);padding:7px 9px;border-radius:6px;background:#101318;color:#fff;
font-size:12px;white-space:pre-line;pointer-events:none;box-shadow:0 2px 10px #0006;overflow-wrap:anywhere}
)CSS";

/// Script: reads the JSON in #data and builds every section. Functions are small and share one namespace of their own.
inline constexpr std::string_view script = R"JS(
(function(){
'use strict';
const D=JSON.parse(document.getElementById('data').textContent);
const NS='http://www.w3.org/2000/svg';
const palette=['#2563eb','#d97706','#059669','#dc2626','#7c3aed','#0891b2','#be185d','#65a30d','#4f46e5','#92400e','#0d9488','#6b7280'];
const colors={};
D.types.forEach((t,i)=>{colors[t.name]=palette[i%palette.length];});
const parts=[['gpu','GPU','#2563eb'],['copy','copy','#d97706'],['host','host operators','#059669'],['enqueue','enqueue','#7c3aed'],['wait','wait','#9ca3af'],['unexplained','unexplained','#dc2626']];
const $=id=>document.getElementById(id);
function el(tag,props,parent){const e=document.createElement(tag);for(const k in props||{}){if(k==='text')e.textContent=props[k];else if(k==='tip')e.dataset.tip=props[k];else if(k==='style')e.style.cssText=props[k];else e.setAttribute(k,props[k]);}if(parent)parent.appendChild(e);return e;}
function svg(tag,props,parent){const e=document.createElementNS(NS,tag);for(const k in props||{}){if(k==='text')e.textContent=props[k];else if(k==='tip')e.dataset.tip=props[k];else e.setAttribute(k,props[k]);}if(parent)parent.appendChild(e);return e;}
function us(v){return v>=1e6?(v/1e6).toFixed(3)+' s':v>=1e3?(v/1e3).toFixed(3)+' ms':v.toFixed(v<10?2:1)+' us';}
function big(v){const p=['','k','M','G','T','P'];let i=0;while(v>=1000&&i<5){v/=1000;i++;}return v?v.toPrecision(3)+p[i]:'0';}
function power(i){return i<0?(10**i).toFixed(-i):big(10**i).replace(/\.0+(?=\D|$)/,'');}
function bytes(v){const p=['B','KiB','MiB','GiB'];let i=0;while(v>=1024&&i<3){v/=1024;i++;}return (i?v.toFixed(1):v)+' '+p[i];}
function color(type){return colors[type]||'#6b7280';}
function typeOf(l){const x=D.launches[l];return x.ops.length?x.ops[x.anchor][1]:x.kind;}
function step(span,most){const raw=span/most;const p=Math.pow(10,Math.floor(Math.log10(raw)));for(const m of [1,2,5,10])if(m*p>=raw)return m*p;return 10*p;}

function tooltips(){const tip=$('tip');
 function show(e){const t=e.target.closest&&e.target.closest('[data-tip]');if(!t){tip.style.display='none';return;}
  tip.textContent=t.dataset.tip;tip.style.display='block';const r=tip.getBoundingClientRect();
  tip.style.left=Math.max(4,Math.min(innerWidth-r.width-4,e.clientX+12))+'px';
  tip.style.top=(e.clientY+18+r.height>innerHeight?Math.max(4,e.clientY-r.height-12):e.clientY+18)+'px';}
 document.addEventListener('pointermove',show);document.addEventListener('pointerdown',show);
 document.addEventListener('scroll',()=>{tip.style.display='none';},true);}

function head(){$('title').textContent=(D.model||'profile')+(D.device?' on '+D.device:'');
 $('sub').textContent='mode '+D.mode+', '+D.runs_total+' inferences'+(D.created?', '+D.created:'')+', '+D.dropped+' events dropped';
 const f=$('facts');
 for(const [k,v] of [['end to end, mean',us(D.e2e.mean)],['median',us(D.e2e.p50)],['90%',us(D.e2e.p90)],['first',us(D.e2e.first)],['kernels per inference',D.kernels],['clock',D.clock.method],['clock error, 90%',us(D.clock.p90/1e3)]].concat(D.overhead?[['profiling costs',(100*D.overhead).toFixed(2)+'%']]:[])){
  const d=el('div',{},f);el('b',{text:String(v).replace(/_/g,'_\u200b'),class:String(v).length>14?'long':''},d);el('span',{text:k},d);}}

function split(){const s=D.split,box=$('split');if(!s||!s.e2e){$('split-section').remove();return;}
 const bar=el('div',{class:'stack'},box),leg=el('div',{class:'legend'},box);
 for(const [k,n,c] of parts){const share=s[k]/s.e2e;const t=n+': '+us(s[k])+', '+(100*share).toFixed(2)+'%';
  if(share>0)el('div',{style:'width:'+100*share+'%;background:'+c,tip:t},bar);
  const l=el('span',{},leg);el('i',{style:'background:'+c},l);l.appendChild(document.createTextNode(t));}}

function timeline(){
 const box=$('timeline'),events=D.events;if(!events.length){el('p',{text:'no events kept'},box);return;}
 const queues=[...new Set(events.filter(e=>e[2]!=='w'&&e[2]!=='h').map(e=>e[3]))].sort((a,b)=>a-b);
 const lanes=[['inferences',26],['host calls',30]];
 for(const q of queues)lanes.push(['queue '+q,44],['queue '+q+' waiting',30]);
 const tops=[];let h=20;for(const l of lanes){h+=13;tops.push(h);h+=l[1]+3;}
 const s=svg('svg',{height:h,id:'timeline-svg',role:'img','aria-label':'timeline'},box);
 const first=Math.min(...D.runs.map(r=>r[1]),events[0][8]),last=Math.max(...events.map(e=>Math.max(e[7],e[9])),...D.runs.map(r=>r[2]));
 let from=first,to=last;
 const width=()=>Math.max(200,box.clientWidth);
 function bars(list,lane,get){ // merges what is narrower than a pixel
  const w=width(),scale=w/(to-from),y=tops[lane],lh=lanes[lane][1];let merged=null,count=0;
  function flush(){if(merged){svg('rect',{x:merged[0],y:y,width:Math.max(.6,merged[1]-merged[0]),height:lh,fill:'#888',opacity:.55,class:'bar merged',tip:merged[2]+' commands, zoom in'},s);merged=null;}}
  for(const e of list){const [a,b,name,fill,tip]=get(e);if(b<from||a>to)continue;const x0=Math.max(0,(a-from)*scale),x1=Math.min(w,(b-from)*scale);
   if(x1-x0<.8){if(merged&&x0-merged[1]<1){merged[1]=Math.max(merged[1],x1);merged[2]++;}else{flush();merged=[x0,x1,1];}continue;}
   flush();if(++count>4000)break;
   svg('rect',{x:x0,y:y,width:x1-x0,height:lh,rx:2,fill:fill,class:'bar',stroke:'var(--card)','stroke-width':x1-x0>4?1:0,tip:tip},s);
   if(x1-x0>40){const t=svg('text',{x:x0+4,y:y+lh/2+4,style:'fill:#fff'},s);const room=Math.floor((x1-x0-8)/6.2);t.textContent=name.length>room?name.slice(0,Math.max(1,room-1))+'\u2026':name;}}
  flush();return count;}
 function draw(){
  while(s.firstChild)s.removeChild(s.firstChild);
  const w=width(),scale=w/(to-from);s.setAttribute('viewBox','0 0 '+w+' '+h);
  const st=step(to-from,Math.max(3,w/110));
  for(let t=Math.ceil(from/st)*st;t<=to;t+=st){const x=(t-from)*scale;svg('line',{x1:x,x2:x,y1:16,y2:h,class:'axis'},s);const late=x>w-70;svg('text',{x:late?x-2:x+2,y:12,'text-anchor':late?'end':'start',class:'soft tick',text:us(t)},s);}
  bars(D.runs,0,r=>[r[1],r[2],'inference '+r[0],'#475569','inference '+r[0]+'\n'+us(r[2]-r[1])]);
  bars(events,1,e=>{const L=D.launches[e[1]];const dev=e[2]!=='w'&&e[2]!=='h';return [e[8],e[9],L.name,e[2]==='w'?'#9ca3af':e[2]==='h'?'#059669':'#7c3aed',(dev?'enqueue ':'')+L.name+'\n'+us(e[9]-e[8])];});
  let arrows=[];
  queues.forEach((q,i)=>{const mine=events.filter(e=>e[3]===q&&e[2]!=='w'&&e[2]!=='h');
   bars(mine,2+2*i,e=>{const L=D.launches[e[1]];return [e[6],e[7],L.name,color(typeOf(e[1])),L.name+'\n'+L.ops.map(o=>o[0]+' ('+o[1]+')').join('\n')+'\nran '+us(e[7]-e[6])+'\nqueued '+us(e[4])+', submitted +'+us(e[5]-e[4])+', started +'+us(e[6]-e[4])+'\nglobal '+e[10]+', local '+e[11]];});
   bars(mine,3+2*i,e=>[e[4],e[6],D.launches[e[1]].name,'#94a3b8',D.launches[e[1]].name+'\nwaited '+us(e[6]-e[4])]);
   const seen=mine.filter(e=>e[8]<=to&&e[6]>=from);if(seen.length<=120)for(const e of seen)arrows.push([(e[8]-from)*scale,(e[6]-from)*scale,tops[2+2*i]]);});
  for(const [x0,x1,y] of arrows)svg('path',{d:'M'+x0+' '+(tops[1]+lanes[1][1])+' C '+x0+' '+(y-2)+','+x1+' '+(tops[1]+lanes[1][1]+2)+','+x1+' '+y,stroke:'#64748b',fill:'none','stroke-width':.8,opacity:.7,class:'flow'},s);
  lanes.forEach((l,i)=>svg('text',{x:4,y:tops[i]-3,class:'soft lane',text:l[0]},s));}
 function zoom(f,at){const c=from+(to-from)*at;const span=Math.min((last-first)*1.05,Math.max(1,(to-from)*f));from=c-span*at;to=from+span;draw();}
 function pan(share){const d=(to-from)*share;from+=d;to+=d;draw();}
 function show(a,b){const m=(b-a)*.03||1;from=a-m;to=b+m;draw();}
 s.addEventListener('wheel',e=>{e.preventDefault();if(Math.abs(e.deltaX)>Math.abs(e.deltaY))pan(e.deltaX/width());else{const r=s.getBoundingClientRect();zoom(Math.exp(e.deltaY*.002),(e.clientX-r.left)/r.width);}},{passive:false});
 const touches=new Map();
 s.addEventListener('pointerdown',e=>{touches.set(e.pointerId,e.clientX);s.setPointerCapture(e.pointerId);});
 s.addEventListener('pointermove',e=>{if(!touches.has(e.pointerId))return;const r=s.getBoundingClientRect();
  if(touches.size===1){pan(-(e.clientX-touches.get(e.pointerId))/r.width);}
  else{const other=[...touches.entries()].find(t=>t[0]!==e.pointerId)[1];const before=Math.abs(touches.get(e.pointerId)-other)||1,now=Math.abs(e.clientX-other)||1;zoom(before/now,((e.clientX+other)/2-r.left)/r.width);}
  touches.set(e.pointerId,e.clientX);});
 for(const n of ['pointerup','pointercancel'])s.addEventListener(n,e=>touches.delete(e.pointerId));
 let at=0;const whole=D.runs.filter(r=>events.some(e=>e[0]===r[0]));
 function go(i){if(!whole.length)return show(first,last);at=(i+whole.length)%whole.length;show(whole[at][1],whole[at][2]);}
 $('in').onclick=()=>zoom(.5,.5);$('out').onclick=()=>zoom(2,.5);$('all').onclick=()=>show(first,last);
 $('prev').onclick=()=>go(at-1);$('next').onclick=()=>go(at+1);$('left').onclick=()=>pan(-.3);$('right').onclick=()=>pan(.3);
 addEventListener('resize',draw);go(Math.max(0,whole.length-1));
 const leg=$('timeline-legend');D.types.slice(0,14).forEach(t=>{const l=el('span',{},leg);el('i',{style:'background:'+color(t.name)},l);l.appendChild(document.createTextNode(t.name));});}

function barList(id,rows,most){const box=$(id);let shown=most;
 function fill(){box.textContent='';const top=rows.length?rows[0].total:1;
  rows.slice(0,shown).forEach(r=>{const tip=r.name+' ('+r.type+')\n'+(r.ops.length>1?r.ops.join(' + ')+'\n':'')+'mean '+us(r.mean)+', median '+us(r.p50)+', 90% '+us(r.p90)+'\n'+r.count+' samples\n'+big(r.flops_s)+'FLOP/s, '+big(r.bytes_s)+'B/s';
   const d=el('div',{class:'row',tip:tip},box);el('div',{class:'name',text:r.name},d);const t=el('div',{class:'track'},d);
   el('div',{class:'bar',style:'width:'+(100*r.total/top)+'%;background:'+color(r.type)},t);el('div',{class:'value',text:us(r.total)},d);el('div',{class:'value',text:(100*r.share).toFixed(1)+'%'},d);});
  if(rows.length>shown){const b=el('button',{text:'all '+rows.length},box);b.onclick=()=>{shown=rows.length;fill();};}}
 fill();}

function table(id,rows,columns){const box=$(id);let by=null,up=false;
 function fill(){box.textContent='';const t=el('table',{},box),h=el('tr',{},el('thead',{},t));
  columns.forEach((c,i)=>{const th=el('th',{text:c[0],class:c[3]?'text':''},h);th.onclick=()=>{up=by===i?!up:false;by=i;fill();};});
  const order=rows.slice();if(by!==null)order.sort((a,b)=>{const x=columns[by][1](a),y=columns[by][1](b);return (x<y?-1:x>y?1:0)*(up?1:-1);});
  const body=el('tbody',{},t);order.forEach(r=>{const tr=el('tr',{},body);columns.forEach(c=>el('td',{text:c[2]?c[2](c[1](r)):c[1](r),class:c[3]?'text':''},tr));});}
 fill();}

// Draws again when a phone is turned or a window resized; a drawing only scaled would leave half of its box empty.
function fitted(id,draw){const box=$(id);let width=0;
 function fit(){if(box.clientWidth===width)return;width=box.clientWidth;box.textContent='';draw(box);}
 addEventListener('resize',fit);fit();}

function roofline(){const pts=D.kernel_rows.filter(r=>r.flops>0&&r.bytes>0&&r.mean>0);
 if(!pts.length){$('roofline-section').remove();return;}
 fitted('roofline',box=>{
 const w=Math.max(300,box.clientWidth),h=Math.min(420,w*.62),m={l:52,r:12,t:12,b:34};
 const c=D.ceilings,xs=pts.map(r=>r.flops/r.bytes),ys=pts.map(r=>r.flops_s);
 if(c.flops&&c.bytes)xs.push(c.flops/c.bytes);if(c.flops)ys.push(c.flops);
 const lo=v=>Math.floor(Math.log10(Math.min(...v))-.1),hi=v=>Math.ceil(Math.log10(Math.max(...v))+.1);
 const x0=lo(xs),x1=hi(xs),y0=lo(ys),y1=hi(ys);
 const X=v=>m.l+(Math.log10(v)-x0)/(x1-x0)*(w-m.l-m.r),Y=v=>h-m.b-(Math.log10(v)-y0)/(y1-y0)*(h-m.t-m.b);
 const s=svg('svg',{viewBox:'0 0 '+w+' '+h,height:h,class:'still',id:'roofline-svg'},box);
 for(let i=x0;i<=x1;i++){const x=X(Math.pow(10,i));svg('line',{x1:x,x2:x,y1:m.t,y2:h-m.b,class:'axis'},s);svg('text',{x:Math.min(x,w-m.r),y:h-m.b+14,'text-anchor':i===x1?'end':'middle',class:'tick',text:power(i)},s);}
 for(let i=y0;i<=y1;i++){const y=Y(Math.pow(10,i));svg('line',{x1:m.l,x2:w-m.r,y1:y,y2:y,class:'axis'},s);svg('text',{x:4,y:y+4,class:'tick',text:power(i)},s);}
 svg('text',{x:w/2-60,y:h-4,text:'FLOP per byte; up: FLOP/s',class:'soft'},s);
 if(c.bytes){const top=c.flops||Math.pow(10,y1);const a=Math.pow(10,x0),knee=top/c.bytes,b=Math.min(knee,Math.pow(10,x1));
  svg('line',{x1:X(a),y1:Y(Math.max(a*c.bytes,Math.pow(10,y0))),x2:X(b),y2:Y(b*c.bytes),stroke:'#dc2626','stroke-width':2,class:'ceiling',tip:big(c.bytes)+'B/s'},s);}
 if(c.flops){const knee=c.bytes?c.flops/c.bytes:Math.pow(10,x0);svg('line',{x1:X(Math.max(knee,Math.pow(10,x0))),y1:Y(c.flops),x2:w-m.r,y2:Y(c.flops),stroke:'#dc2626','stroke-width':2,class:'ceiling',tip:big(c.flops)+'FLOP/s'},s);}
 const most=Math.max(...pts.map(r=>r.total));
 pts.forEach(r=>svg('circle',{cx:X(r.flops/r.bytes),cy:Y(r.flops_s),r:3+7*Math.sqrt(r.total/most),fill:color(r.type),opacity:.75,class:'point',tip:r.name+'\n'+r.ops.join(' + ')+'\n'+big(r.flops_s)+'FLOP/s, '+big(r.bytes_s)+'B/s\n'+us(r.mean)},s));
 if(!c.flops&&!c.bytes)el('p',{text:'The device\u2019s ceilings have not been measured.'},box);});}

function memory(){if(!D.memory.length){$('memory-section').remove();return;}
 fitted('memory',box=>{
 const w=Math.max(300,box.clientWidth),h=Math.min(420,Math.max(220,w*.5)),m={l:64,r:8,t:8,b:22};
 const steps=Math.max(...D.memory.map(b=>b[2]))+1,top=Math.max(D.arena,...D.memory.map(b=>b[3]+b[4]));
 const X=v=>m.l+v/steps*(w-m.l-m.r),Y=v=>h-m.b-v/top*(h-m.t-m.b);
 const s=svg('svg',{viewBox:'0 0 '+w+' '+h,height:h,class:'still',id:'memory-svg'},box);
 for(let i=0;i<=4;i++){const y=Y(top*i/4);svg('line',{x1:m.l,x2:w-m.r,y1:y,y2:y,class:'axis'},s);svg('text',{x:2,y:y+4,class:'tick',text:bytes(Math.round(top*i/4))},s);}
 svg('text',{x:w/2-30,y:h-6,class:'soft',text:'step 0 to '+(steps-1)},s);
 const live=new Array(steps).fill(0);D.memory.forEach(b=>{for(let i=b[1];i<=b[2];i++)live[i]+=b[4];});
 const most=Math.max(...live),peak=live.indexOf(most),there=b=>b[1]<=peak&&peak<=b[2],bound=D.bound||most;
 D.memory.forEach(b=>svg('rect',{x:X(b[1]),y:Y(b[3]+b[4]),width:Math.max(1,X(b[2]+1)-X(b[1])),height:Math.max(1,Y(b[3])-Y(b[3]+b[4])),fill:there(b)?'#2f6690':'#8fb0d4',opacity:.85,stroke:'var(--bg)','stroke-width':.5,class:there(b)?'tensor peak':'tensor',tip:b[0]+'\n'+bytes(b[4])+' at '+b[3]+'\nsteps '+b[1]+' to '+b[2]},s));
 svg('polyline',{points:live.map((v,i)=>X(i+.5)+','+Y(v)).join(' '),fill:'none',stroke:'var(--fg)','stroke-width':1.5,class:'live'},s);
 svg('line',{x1:m.l,x2:w-m.r,y1:Y(bound),y2:Y(bound),stroke:'#dc2626','stroke-width':1.5,'stroke-dasharray':'7 4',class:'bound',tip:'bound '+bytes(bound)},s);
 el('p',{text:'Arena '+bytes(top)+', bound '+bytes(bound)+' (dashed); the solid line is what is alive, at most '+bytes(most)+' in step '+peak+'.'},box);
 const named=D.memory.filter(there).sort((a,b)=>b[4]-a[4]),told=named.slice(0,24);
 el('p',{id:'memory-peak',text:'Alive at the peak: '+told.map(b=>b[0]+' ('+bytes(b[4])+')').join(', ')+(named.length>told.length?' and '+(named.length-told.length)+' more':'')+'.'},box);});}

function blocks(){const box=$('blocks'),all=D.launches.filter(l=>l.ops.length>1).sort((a,b)=>b.ops.length-a.ops.length);
 if(!all.length){el('p',{text:'No kernel holds more than one operator.'},box);return;}
 let shown=20;function fill(){box.textContent='';all.slice(0,shown).forEach(l=>{const d=el('div',{class:'block'},box);el('small',{text:l.name+(l.shapes?'  '+l.shapes:'')},d);el('br',{},d);
  l.ops.forEach((o,i)=>el('span',{class:'chip'+(i===l.anchor?' anchor':''),style:'background:'+color(o[1]),text:o[1],tip:o[0]},d));});
  if(all.length>shown){const b=el('button',{text:'all '+all.length},box);b.onclick=()=>{shown=all.length;fill();};}}fill();}

function clock(){const c=D.clock;el('p',{text:'Device times are mapped by '+c.method+': offset '+c.offset.toFixed(0)+' ns, drift '+c.drift.toFixed(3)+' ppm; residual median '+c.p50.toFixed(0)+' ns, 90% '+c.p90.toFixed(0)+' ns; '+c.outliers+' outliers of '+c.pairs+' pairs; '+c.violations+' order violations.'},$('clock'));
 table('clock-table',D.clock_candidates,[['method',r=>r.method,null,1],['pairs',r=>r.pairs],['outliers',r=>r.outliers],['median ns',r=>r.p50,v=>v.toFixed(0)],['90% ns',r=>r.p90,v=>v.toFixed(0)],['drift ppm',r=>r.drift,v=>v.toFixed(3)]]);}

const columns=[['name',r=>r.name,null,1],['type',r=>r.type,null,1],['samples',r=>r.count],['first',r=>r.first,us],['mean',r=>r.mean,us],['min',r=>r.min,us],['median',r=>r.p50,us],['90%',r=>r.p90,us],['max',r=>r.max,us],['%',r=>r.share,v=>(100*v).toFixed(1)],['FLOP/s',r=>r.flops_s,big],['B/s',r=>r.bytes_s,big],['operators',r=>r.ops.join(' + '),null,1]];
tooltips();head();split();timeline();barList('operators',D.operators,30);barList('types',D.types,20);table('kernels',D.kernel_rows,columns);roofline();memory();blocks();clock();
document.documentElement.dataset.ready='1';
})();
)JS";

/// The sections that the script fills.
inline constexpr std::string_view body = R"HTML(
<h1 id="title">profile</h1><p id="sub"></p><div class="facts" id="facts"></div>
<section id="split-section"><h2>Where the time goes</h2><div id="split"></div></section>
<h2>Timeline</h2>
<div class="tools"><button id="in">zoom in</button><button id="out">zoom out</button><button id="left">&larr;</button><button id="right">&rarr;</button><button id="prev">previous inference</button><button id="next">next</button><button id="all">all</button></div>
<div class="box" id="timeline"></div><div class="legend" id="timeline-legend"></div>
<h2>Operators</h2><p>A fused kernel counts for its anchor. Time per inference.</p><div id="operators"></div>
<h2>By type</h2><div id="types"></div>
<section id="roofline-section"><h2>Roofline</h2><div class="box" id="roofline"></div></section>
<section id="memory-section"><h2>Memory plan</h2><div class="box" id="memory"></div></section>
<h2>Fused kernels</h2><div id="blocks"></div>
<h2>Kernels</h2><div class="wide" id="kernels"></div>
<h2>Clock</h2><div id="clock"></div><div class="wide" id="clock-table"></div>
<div id="tip"></div>
)HTML";

}  // namespace dnnopt::profile::html

#endif  // DNNOPT_PROFILE_REPORT_HTML_PAGE_HPP
